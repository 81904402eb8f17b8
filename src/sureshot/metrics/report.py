"""What one evaluation found: raw scores first, everything else named for what it is."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from sureshot.errors import SureshotError
from sureshot.files import replace_file, write_text
from sureshot.metrics.hubs import (
    CLIP_SCALE,
    Bank,
    dual_softmax,
    hubness_skewness,
    inverted_softmax,
    nearest_neighbour_normalised,
    querybank_norm,
)
from sureshot.metrics.intervals import (
    Interval,
    intervals,
    mean_of,
    median_of,
    of_percent,
    resampling_note,
)
from sureshot.metrics.published import Direction, Match, Setting, compare, folded_name
from sureshot.metrics.ranks import (
    Owners,
    Recall,
    Scores,
    recall,
    recall_at,
    rsum,
    text_ranks,
    video_ranks,
)
from sureshot.text import aligned, counted


@dataclass(frozen=True, slots=True)
class Line:
    """The numbers of one direction under one way of scoring.

    Attributes:
        name: ``raw``, or the post-processing and what it looks at.
        direction: text to video or video to text.
        recall: the numbers.
        intervals: interval of each field of ``recall``, by resampling videos; empty for fewer than
            two videos.
        gain: R@1 minus that of the raw scores, in points; None for these themselves.
        tied: queries whose sought item ties with another.
        r1_best: R@1 if every tie fell in our favour.
        r1_worst: R@1 if every tie fell against us.
        gamma: weight of the uncertainty in the scores; None where there is none.
    """

    name: str
    direction: Direction
    recall: Recall
    intervals: Mapping[str, Interval]
    gain: Interval | None
    tied: int
    r1_best: float
    r1_worst: float
    gamma: float | None = None


@dataclass(frozen=True, slots=True)
class CorrectedScores:
    """Scores of one direction after a correction.

    Attributes:
        name: the correction, its settings and what it looks at.
        scores: rows are texts, columns videos, in both directions.
        gamma: weight of the uncertainty in it; None for a correction without one.
    """

    name: str
    direction: Direction
    scores: Scores
    gamma: float | None = None


# Of each hub correction its label, its function, and whether it looks at all test queries.
CORRECTIONS: dict[str, tuple[str, Callable[..., np.ndarray], bool]] = {
    "dsl": ("DSL", dual_softmax, True),
    "inverted_softmax": ("inverted softmax", inverted_softmax, True),
    "qb_norm": ("QB-Norm", querybank_norm, False),
    "nnn": ("NNN", nearest_neighbour_normalised, False),
}
_WAYS: dict[Direction, str] = {"t2v": "text → video", "v2t": "video → text"}


def hub_corrected(
    name: str, similarity: Scores, bank: Bank | None = None, scale: float | None = None
) -> list[CorrectedScores]:
    """Cosines, not yet scaled, after one of `CORRECTIONS`.

    One that looks at the ``bank``, similarities of training captions to the same videos, corrects
    videos and says nothing of video to text. The others take the model's logit ``scale``.
    """
    label, correct, transductive = CORRECTIONS[name]
    if not transductive:
        label = f"{label} (bank: {0 if bank is None else len(bank)} training captions)"
        return [CorrectedScores(label, "t2v", correct(similarity, bank))]
    scale = scale or CLIP_SCALE
    label += f" at scale {scale:.3g} (looks at all test queries)"
    return [
        CorrectedScores(label, "t2v", correct(similarity, scale)),
        CorrectedScores(label, "v2t", correct(similarity.T, scale).T),
    ]


@dataclass(frozen=True, slots=True)
class RecallReport:
    """An evaluation of one system on one set; see `report`.

    Attributes:
        title: title of the protocol.
        system: name of what was evaluated.
        setting: data and circumstances.
        raw: the scores as they are, text to video, then video to text.
        left_out: printed rows of another split, gallery or texts, which are not among ``matches``.
        undescribed: videos without a text: candidates, but no queries of video to text.
        hubness: skewness of the 10-occurrence of the raw scores.
        ks: recalls that are printed.
        resamples: number of times that videos were drawn for the intervals.
        seed: seed of that chance.
    """

    title: str
    system: str
    setting: Setting
    raw: tuple[Line, Line]
    post: tuple[Line, ...]
    matches: Mapping[Direction, tuple[Match, ...]]
    left_out: int
    undescribed: int
    hubness: float
    ks: tuple[int, ...]
    resamples: int
    seed: int

    @property
    def rsum(self) -> float:
        """Sum of the raw recalls at ``ks`` of both directions."""
        return rsum(self.raw[0].recall, self.raw[1].recall, self.ks)

    @property
    def out_of_domain(self) -> str:
        """Says so where the training is known and did not include the data set tested on."""
        trained, tested = self.setting.trained_on, self.setting.dataset
        names = [folded_name(name) for name in re.split(r"[+,]", trained)]
        if not trained or not tested or folded_name(tested) in names:
            return ""
        return f"out of domain: trained on {trained}, tested on {tested}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, the raw scores before all others."""
        renamed = {"post": "post_processed", "matches": "published", "ks": "rsum_of"}
        renamed |= {"undescribed": "undescribed_videos", "hubness": "hubness_skewness_10"}
        values = {renamed.get(name, name): value for name, value in asdict(self).items()}
        more = {"out_of_domain": self.out_of_domain, "rsum": self.rsum, "video_to_text": "group"}
        return values | more

    def text(self) -> str:
        """A table for the terminal; raw scores first, differences next to every printed row."""
        return "\n".join([*self._head(), *self._results(), *self._printed()]) + "\n"

    def _head(self) -> Iterator[str]:
        of = self.setting
        yield self.title
        named = [self.system, of.encoder_is, f"{of.frames} frames" if of.frames else ""]
        named.append(f"trained on {of.training}" if of.trained_on else "")
        if any(named):
            yield " · ".join(part for part in named if part)
        yield f"{counted(of.texts, 'text')}, {counted(of.videos, 'video')}. Raw scores come first."
        if self.out_of_domain:
            yield self.out_of_domain
        if self.undescribed:
            yield (
                f"{counted(self.undescribed, 'video')} without a text: among the results of "
                f"{_WAYS['t2v']}, but no query of {_WAYS['v2t']}."
            )
        if self.raw[0].intervals:
            yield resampling_note(self.resamples, self.seed)

    def _results(self) -> Iterator[str]:
        for raw in self.raw:
            also = ", captions of a video as one group" if raw.direction == "v2t" else ""
            yield f"\n{_WAYS[raw.direction]}, n = {raw.recall.n}{also}"
            lines = [raw, *(line for line in self.post if line.direction == raw.direction)]
            heads = ["", *(f"R@{k}" for k in self.ks), "MdR", "MnR"]
            if len(lines) > 1:
                heads.append("R@1 minus raw")
            yield from aligned([heads, *(self._cells(line, len(heads)) for line in lines)])
            for line in lines:
                if line.tied:
                    yield (
                        f"Ties, {line.name}: {line.tied} of {line.recall.n} queries; R@1 is "
                        f"{line.r1_worst:.1f} to {line.r1_best:.1f}, depending on how they fall."
                    )
        recalls = ", ".join(f"R@{k}" for k in self.ks)
        yield f"\nrsum {self.rsum:.1f}: the sum of {recalls} of both directions, raw"
        yield f"Hubness: skewness of N_10 is {self.hubness:.2f} (raw); 0 means no hubs."

    @property
    def _fields(self) -> list[str]:
        """What a row of a table shows, as `Recall` and the printed rows name it."""
        return [*(f"r{k}" for k in self.ks), "median", "mean"]

    def _cells(self, line: Line, width: int) -> list[str]:
        numbers = ((getattr(line.recall, field), field) for field in self._fields)
        cells = [line.name, *(_value(x, line.intervals.get(field)) for x, field in numbers)]
        if line.gain is not None:
            cells.append(_value(line.gain.value, line.gain, "+.1f"))
        return cells + [""] * (width - len(cells))

    def _printed(self) -> Iterator[str]:
        for way, matches in self.matches.items():
            if not matches:
                continue
            yield f"\nPublished, {_WAYS[way]}"
            protocols = [match.protocol for match in matches]
            everywhere = [text for text in protocols[0] if all(text in one for one in protocols)]
            if any(protocols):
                of = "; ".join(everywhere) or "see each row"
                yield f"! Other data or protocol, so the numbers do not compare: {of}"
            heads = ["", *(f"R@{k}" for k in self.ks), "MdR", "MnR"]
            cells = []
            for row in (match.row for match in matches):
                trained = f" trained on {row.trained_on}" if row.trained_on else ""
                name = f"{row.name} {row.encoder}".rstrip() + trained
                values = [getattr(row, field) for field in self._fields]
                numbers = ("" if value is None else f"{value:.1f}" for value in values)
                cells.append([f"{name} ({row.table}, {row.split})", *numbers])
            table = aligned([heads, *cells])
            yield table[0]
            for match, line in zip(matches, table[1:], strict=True):
                yield line
                rest = [text for text in match.protocol if text not in everywhere]
                if rest:
                    yield f"    ! other data or protocol: {'; '.join(rest)}"
                if not match.protocol:
                    yield "    - same split and sizes; whether the same videos is not checked"
                yield from (f"    - {text}" for text in match.warnings)
        if self.left_out:
            yield (
                f"\n{counted(self.left_out, 'printed row')} of another split, gallery or number of "
                "texts left out; name a method to see its rows all the same."
            )


def report(
    similarity: Scores,
    owner: Owners,
    setting: Setting | None = None,
    *,
    title: str,
    system: str = "",
    against: Sequence[str] = (),
    comparable: bool = False,
    corrected: Sequence[CorrectedScores] = (),
    ks: Sequence[int] = (1, 5, 10),
    resamples: int = 1000,
    seed: int = 0,
) -> RecallReport:
    """Evaluate a matrix of similarities in both directions.

    Args:
        similarity: raw scores, higher is better.
        setting: its numbers of texts and videos are those of the scores.
        title: title of the protocol: which data, which split, what is left out.
        against: methods whose printed rows are shown below ours.
        comparable: whether those are left out whose split, gallery or texts are others.
        corrected: further scores, shown below the raw ones.
    """
    similarity, owner = np.asarray(similarity), np.asarray(owner)
    line = partial(_line, owner=owner, resamples=resamples, seed=seed)
    compared = {"t2v": text_ranks(similarity, owner), "v2t": video_ranks(similarity, owner)}
    raw = line("raw", "t2v", similarity), line("raw", "v2t", similarity)
    shown = [
        line(one.name, one.direction, one.scores, raw=compared[one.direction], gamma=one.gamma)
        for one in corrected
    ]
    texts, videos = similarity.shape
    setting = replace(setting or Setting(), texts=texts, videos=videos)
    matches = {
        way: [one for name in against for one in compare(setting, method=name, direction=way)]
        for way in _WAYS
    }
    shown_matches = {
        way: tuple(match for match in found if not (comparable and match.protocol))
        for way, found in matches.items()
    }
    return RecallReport(
        title=title,
        system=system,
        setting=setting,
        raw=raw,
        post=tuple(shown),
        matches=shown_matches,
        left_out=sum(len(matches[way]) - len(shown_matches[way]) for way in _WAYS),
        undescribed=videos - raw[1].recall.n,
        hubness=hubness_skewness(similarity),
        ks=tuple(ks),
        resamples=resamples,
        seed=seed,
    )


def _line(
    name: str,
    way: Direction,
    scores: Scores,
    *,
    owner: Owners,
    raw: Float64[np.ndarray, " queries"] | None = None,
    gamma: float | None = None,
    resamples: int,
    seed: int,
) -> Line:
    """The line of these scores; ``raw`` are the ranks it is to be compared with."""
    rank = text_ranks if way == "t2v" else video_ranks
    mean, best = rank(scores, owner), rank(scores, owner, ties="best")
    statistics = {f"r{k}": mean_of(100.0 * (mean <= k)) for k in (1, 5, 10, 50)}
    statistics |= {"median": median_of(mean), "mean": mean_of(mean)}
    if raw is not None:
        statistics["gain"] = mean_of(100.0 * (mean <= 1) - 100.0 * (raw <= 1))
    ends: dict[str, Interval] = {}
    apart = np.unique(owner)
    if len(apart) > 1:
        videos = owner if way == "t2v" else apart
        # From the seed again, so that all lines draw the same videos.
        ends = intervals(statistics, videos, np.random.default_rng(seed), resamples=resamples)
        ends |= {k: of_percent(ends[k], len(apart)) for k in ("r1", "r5", "r10", "r50")}
    return Line(
        name=name,
        direction=way,
        recall=recall(mean),
        gain=ends.pop("gain", None),
        intervals=ends,
        tied=int(np.count_nonzero(mean > best)),
        r1_best=recall_at(best, 1),
        r1_worst=recall_at(2 * mean - best, 1),
        gamma=gamma,
    )


def _value(value: float, found: Interval | None, form: str = ".1f") -> str:
    return f"{value:{form}}" + (f" {found.ends()}" if found else "")


def write_trec(
    folder: Path, similarity: Scores, owner: Owners, videos: Sequence[str], tag: str
) -> None:
    """Write ``run.txt`` and ``qrels.txt``, where a text is named after its video and its row.

    A line of a run is ``text Q0 video rank score tag``, the best 1000 of each text, without those
    that score ``-inf``: they were ruled out. Scores are written so that reading them gives the same
    numbers again. Most tools ignore the written rank, sort by score and break ties by the video's
    name, so numbers agree with `recall` only where no scores tie.
    """
    videos = ["_".join(name.split()) for name in videos]  # white space separates the fields
    if len(set(videos)) < len(videos):
        raise SureshotError(
            f"{len(set(videos))} different names for {len(videos)} videos; give one each."
        )
    owners = [videos[own] for own in owner]
    texts = [f"{name}#{row}" for row, name in enumerate(owners)]
    tag = "_".join(Path(tag).name.split())
    folder.mkdir(parents=True, exist_ok=True)
    with (
        replace_file(folder / "run.txt") as fresh,
        fresh.open("w", encoding="utf-8", newline="\n") as file,
    ):
        for text, row in zip(texts, similarity, strict=True):
            best = np.argsort(-row.astype(np.float64), kind="stable")[:1000]
            kept = best[np.isfinite(row[best])]
            file.writelines(
                f"{text} Q0 {videos[i]} {rank} {float(row[i])!r} {tag}\n"
                for rank, i in enumerate(kept.tolist(), 1)
            )
    judged = (f"{text} 0 {own} 1\n" for text, own in zip(texts, owners, strict=True))
    write_text(folder / "qrels.txt", "".join(judged))
