"""Judging hits: somebody looks at the best hits of a query and says which are right."""

import contextlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from sureshot.errors import ArgumentError, SureshotError, reason_of
from sureshot.library import labels
from sureshot.library.labels import JudgedMoment, Label
from sureshot.library.query_checks import clean, phrase_of
from sureshot.library.results import JSON_SCHEMA, Copy, Hit
from sureshot.library.search import Searcher, open_index
from sureshot.library.video_list import VideoFilter
from sureshot.models.hub_bank import cards_of
from sureshot.paths import IndexPlace, absolute, as_list, expand, index_place
from sureshot.settings import open_file
from sureshot.store.index import Store
from sureshot.text import counted, plain, printable
from sureshot.trust.fit import ENOUGH, JUDGED, QUERIES

Verdict = Literal["yes", "no", "absent", "more", "unknown", "again", "skip", "quit"]


class Judgements:
    """A file of judged queries that grows while somebody judges, which need not be there yet.

    Attributes:
        needed: queries that percentages are learned from, at least.
        repaired: whether `add` dropped half a line at its end, left by a loss of power. Until then
            it is passed over: another process may be writing it, and who reads may not write.
    """

    def __init__(self, file: str | Path) -> None:
        self.file, self.needed, self.repaired = expand(file), JUDGED, False
        self._check()
        known = labels.read_labels(self.file, growing=True) if self.file.exists() else []
        self._labels = {label.query: label for label in known}

    @classmethod
    def of_index(cls, index: Store | str, file: str | Path | None = None) -> "Judgements":
        """Those about an open index, or one at a place that may be empty; no file is that in it."""
        place = index if isinstance(index, str) else index.location
        kept = cls(labels.labels_of_index(place) if file is None else file)
        if isinstance(index, Store) or Store.exists(place):
            store = index if isinstance(index, Store) else Store.open(place)
            # Of a model without a card percentages are learned from more. Not `Path.exists`, which
            # raises where nothing may be looked at.
            cards = cards_of(store.settings.model, store.fingerprint)
            kept.needed = JUDGED if any(map(os.path.exists, cards)) else QUERIES
        return kept

    def __len__(self) -> int:
        """Queries judged so far."""
        return len(self._labels)

    def left(self, queries: Iterable[str]) -> list[str]:
        """Those of some queries that are not judged yet, each once."""
        cleaned = dict.fromkeys(clean(query) for query in queries)
        return [query for query in cleaned if query not in self._labels]

    def add(self, label: Label) -> None:
        """Keep a judged query; it is on the disk when this returns."""
        self.repaired |= labels.drop_half_line(self.file)
        labels.append(self.file, label)
        old = self._labels.pop(label.query, None)
        for known in labels.together([label] if old is None else [old, label]):
            self._labels[label.query] = known

    def of(self, query: str) -> Label | None:
        """What is known of a query; None for one that was not judged."""
        return self._labels.get(query)

    def __iter__(self) -> Iterator[Label]:
        """The judged queries, the one judged last at the end."""
        return iter(self._labels.values())

    def remove(self, query: str) -> None:
        """Forget what was judged of a query."""
        del self._labels[query]
        labels.write(self.file, self)

    def count(self, state: str) -> int:
        """Judged queries that are ``present``, ``absent`` or ``not found``."""
        return sum(label.state == state for label in self._labels.values())

    @property
    def summary(self) -> str:
        """How many searches are judged, and what more of them would bring, in sentences."""
        return self.described(" judged")

    def described(self, are: str = "") -> str:
        """The `summary` with another word for what was done with the searches."""
        absent = self.count("absent")
        head = f"{counted(len(self), 'search', 'searches')}{are}"
        head += f", {absent} of them for what is not here" if absent else ""
        return f"{head}. {self.next_step}".rstrip()

    @property
    def of_words(self) -> int:
        """Judged queries that percentages learn nothing from."""
        return sum(label.is_of_words for label in self)

    @property
    def is_enough(self) -> bool:
        """Whether percentages can be learned."""
        return len(self) - self.of_words >= self.needed

    @property
    def next_step(self) -> str:
        """What further judgements would bring, in sentences; empty where they bring nothing."""
        judged, of_words = len(self) - self.of_words, self.of_words
        words = f"{of_words} about words, from which percentages don't learn. " if of_words else ""
        if judged >= ENOUGH:
            return words.rstrip()
        if judged < self.needed:
            return f"{words}{self.needed - judged} more, and percentages can be learned from them."
        return f"{words}Enough to learn from; more, up to {ENOUGH}, make the percentages better."

    def _check(self) -> None:
        try:
            with open_file(self.file) as opened:
                first = opened.read(4096).lstrip()[:1]
        except FileNotFoundError:
            return
        except OSError as error:
            raise SureshotError(f"{plain(self.file)} cannot be read: {reason_of(error)}.") from None
        if first not in (b"", b"{"):
            raise SureshotError(
                f"{plain(self.file)} holds something other than judgements; name another file."
            )


@dataclass(frozen=True, slots=True, repr=False)
class JudgingSession:
    """What a session left: a file of judged queries, those of earlier sessions among them.

    Attributes:
        file: the judgements, which `sureshot.library.calibrate` reads.
        judged: queries in the file.
        present: number of them with a right video.
        absent: number of them whose video is not in the library.
        not_found: number of them of which no hit shown was right.
        left: queries of this session that are not judged yet.
        next_step: what further judgements would bring, in sentences.
        is_enough: whether percentages can be learned.
        repaired: whether half a line at the end of the file, left by a loss of power, was dropped.
        interrupted: whether Ctrl-C ended the session.
    """

    file: Path
    judged: int
    present: int
    absent: int
    not_found: int
    left: int
    next_step: str = ""
    is_enough: bool = False
    repaired: bool = False
    interrupted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        counts = ("judged", "present", "absent", "not_found", "left")
        file = printable(absolute(self.file))
        return {"schema": JSON_SCHEMA, "labels": file} | {n: getattr(self, n) for n in counts}

    def __repr__(self) -> str:
        """How many queries are judged, and how many more are needed."""
        head = f"{counted(self.judged, 'query', 'queries')} judged in {plain(self.file)}"
        head += f", {self.absent} of them not in the library" if self.absent else ""
        head += f", {self.not_found} of them not found" if self.not_found else ""
        head += f"; {self.left} left, which the same command asks" if self.left else ""
        return f"{head}.\n{self.next_step}".rstrip()


def judge(
    queries: Iterable[str],
    ask: Callable[[Hit], Verdict],
    *,
    ask_more: Callable[[int], Verdict] = lambda shown: "unknown",
    begin: Callable[[str, int, int], None] = lambda query, number, total: None,
    to: str | Path | None = None,
    db: IndexPlace = None,
    model: str | Path | None = None,
    device: str | None = None,
    limit: int = 3,
    explain: str | Path | None = None,
) -> JudgingSession:
    """Let somebody say of the best hits of some queries whether they are right.

    Each judged query is kept at once, and is not asked again by the next call with the same file.
    Of each video only its best moment is shown. Ctrl-C ends the session, as "quit" does.

    Args:
        ask: gives for a hit "yes", "no", "absent" (no video shows it), "again" (this query from its
            first hit on), "skip" (the query) or "quit".
        ask_more: the same after so many hits of which none is right: "more" (show as many again),
            "absent", "unknown" (it may be there), "again", "skip" or "quit".
        begin: called before a query with it, its number, and how many there are to judge.
        to: file of the judgements, made if it is not there; None is in the index, where
            `sureshot.library.calibrate` looks for it and `reset` leaves it.
        db: the index, opened, or by its place, which goes with ``model`` and ``device`` as of
            `sureshot.open_index`.
        limit: hits of a query that are judged.
        explain: PNG into which the hits of the query in hand are drawn.

    Raises:
        SureshotError: nothing is indexed, a query is empty, or the file cannot be used.
    """
    searcher: Searcher | None = None
    kept = Judgements.of_index(index_place(db), to)
    left = kept.left(as_list(queries))
    interrupted = False
    try:
        for number, query in enumerate(left, 1):
            searcher = searcher or open_index(db, model=model, device=device)
            begin(query, number, len(left))
            if explain is not None:
                from sureshot.library.clips import draw_hits  # needs PyAV and Pillow

                answer = searcher.search(query, limit=limit, per_video=1, correct=False)
                # Without percentages, which whoever judges should not go by.
                hits = tuple(replace(hit, probability=None) for hit in answer)
                draw_hits(replace(answer, hits=hits), Path(explain))
            label = judge_query(searcher, query, ask, ask_more, {"limit": limit})
            if label == "quit":
                break
            if label != "skip":
                kept.add(label)
    except KeyboardInterrupt:
        interrupted = True
    return JudgingSession(
        file=kept.file,
        judged=len(kept),
        present=kept.count("present"),
        absent=kept.count("absent"),
        not_found=kept.count("not found"),
        left=len(kept.left(left)),
        next_step=kept.next_step,
        is_enough=kept.is_enough,
        repaired=kept.repaired,
        interrupted=interrupted,
    )


def judge_again(
    searcher: Searcher,
    query: str,
    ask: Callable[[Hit], Verdict],
    *,
    ask_more: Callable[[int], Verdict] = lambda shown: "unknown",
    **options: Any,
) -> Judgements:
    """Let somebody judge the best hits of one query, also one that was judged before.

    What is said now is kept in the index, also where not all hits were judged, and holds where
    earlier judgements say otherwise. ``options`` are those of `Searcher.search` that choose videos
    and hits; where only some videos were searched, nothing is kept of what the library as a whole
    has. The other arguments are those of `judge`.
    """
    kept = Judgements.of_index(searcher.store)
    with contextlib.suppress(KeyboardInterrupt):
        label = judge_query(searcher, clean(query), ask, ask_more, options, keep_begun=True)
        if isinstance(label, Label):
            kept.add(label)
    return kept


def judge_moments(
    searcher: Searcher, query: str, moments: Iterable[JudgedMoment], *, absent: bool = False
) -> Judgements:
    """Keep in the index what somebody says of some moments that a search showed.

    It holds where earlier judgements of the query say otherwise. If all is ``absent``, no video of
    the library shows it.
    """
    kept = Judgements.of_index(searcher.store)
    label = Label(clean(query), tuple(moments), absent)
    kept.add(current([label], searcher.store, keep_gone=True)[0])
    return kept


def current(judged: Sequence[Label], store: Store, *, keep_gone: bool = False) -> list[Label]:
    """Labels with the paths that their videos have in an index now, and digests where none were.

    Moments of videos that are not in it any longer go, or are kept.
    """
    known = {(moment.video, moment.digest) for label in judged for moment in label.moments}
    there = {path: one.digest for path, one in store.at({path for path, _ in known}).items()}
    if any(digest and there.get(path) != digest for path, digest in known):
        there = {record.path: record.digest for record in store.videos()}  # some were moved
    names = labels.Names(Path("/"), there)
    return [names.located(label, keep_gone=keep_gone) for label in judged]


_OF_HIT: tuple[Verdict, ...] = "yes", "no", "absent", "again", "skip", "quit"
_OF_NONE: tuple[Verdict, ...] = "more", "absent", "unknown", "again", "skip", "quit"


def _checked(verdict: Verdict, known: tuple[Verdict, ...]) -> Verdict:
    """What was said of a hit, or where none was right, if it is one of what can be."""
    if verdict not in known:
        raise ArgumentError(f"The answer was {verdict!r}; say one of {', '.join(known)}.")
    return verdict


def judge_query(
    searcher: Searcher,
    query: str,
    ask: Callable[[Hit], Verdict],
    ask_more: Callable[[int], Verdict],
    options: Mapping[str, Any],
    *,
    keep_begun: bool = False,
) -> Label | Literal["skip", "quit"]:
    """What somebody says of the best hits of one query, or how it ended without a label.

    ``options`` are those of `Searcher.search` that choose videos and hits; with ``keep_begun``
    "quit" after the first hit ends the query with what was said till then.
    """
    chosen = {one.name for one in fields(VideoFilter) if options.get(one.name) is not None}
    everywhere = not chosen and not phrase_of(query)  # whether all that there is was looked at
    while True:
        moments: list[JudgedMoment] = []
        verdict: Verdict = "no"
        for page in _pages(searcher, query, options):
            for hit in page:
                verdict = _checked(ask(hit), _OF_HIT)
                if verdict not in ("yes", "no"):
                    break
                right = verdict == "yes"
                shown: list[Hit | Copy] = [hit, *hit.copies]
                moments += [
                    JudgedMoment(m.path, right, m.start, end=m.end, source=hit.source)
                    for m in shown
                ]
            found = any(moment.right for moment in moments)
            if verdict in ("yes", "no") and not found:
                verdict = _checked(ask_more(len(moments)), _OF_NONE)
            if verdict != "more":
                break
        else:
            verdict = "absent" if everywhere else "unknown"
        if verdict == "skip" or (verdict == "quit" and not (keep_begun and moments)):
            return verdict
        if verdict != "again":
            absent = verdict == "absent" and not found and not chosen
            if not (moments or absent):
                return "skip"  # nothing was said of any video
            label = Label(query, tuple(moments), absent)
            return current([label], searcher.store, keep_gone=True)[0]


def _pages(searcher: Searcher, query: str, options: Mapping[str, Any]) -> Iterator[list[Hit]]:
    """The hits of a query, so many at a time; no video twice, at least one page.

    The page of a phrase that is not in any words is empty.
    """
    limit, seen = options.get("limit", 3), set[Path]()
    for number in itertools.count():
        wanted = {**options, "limit": len(seen) + limit, "per_video": 1, "correct": False}
        answer = searcher.search(query, **wanted)
        page = [hit for hit in answer if hit.path not in seen][:limit]
        if not answer.hits and not phrase_of(query):
            raise SureshotError(" ".join(answer.warnings))
        if not page and number:
            return
        yield page
        for hit in page:
            seen |= {hit.path, *(copy.path for copy in hit.copies)}
