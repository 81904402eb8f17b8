"""Words of videos: how often the line that is meant comes first, and what percentages are worth.

    python -m benchmarks.words fit           # the weights in `sureshot.library.words`
    python -m benchmarks.words fit --speech MODEL   # of speech, as MODEL hears voices of flite
    python -m benchmarks.words lines         # held-out lines, by source and kind of query
    python -m benchmarks.words lines --speech MODEL # of speech, by voices of espeak-ng
    python -m benchmarks.words films --to F  # MSR-VTT test videos, searched with and without lines
    python -m benchmarks.words table         # bytes and milliseconds of a million lines

Lines are captions, or sentences such as people say in films, made by rules; of some of these a
quarter name what a caption shows ("open the door please"). A query quotes a piece of a line, names
some of its words in any order, says it in other words by rules, or is another caption of the same
video that has half of its words. Of seven queries three mean a line that is there, two one that is
not, and two a picture: a caption, and one or two words of one. Those that have words of a line and
mean a picture ("a man is opening the door") count three times in the fit. Text in the picture has
mistakes such as readers make; speech is said by programs (`benchmarks.voices`) and heard by a
model. Weights are fitted on captions of the training videos of MSR-VTT and of the training
photographs of Flickr8k, and on such sentences; everything else is measured on captions of the
validation and test videos, and other sentences.
"""

import argparse
import random
import re
import shutil
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.special import expit

from benchmarks import data, voices
from sureshot import library
from sureshot.library.query_checks import FIRST_NAMES
from sureshot.library.words import (
    LOOKED_AT,
    SIGNALS,
    WITHIN,
    are_right_together,
    has_few_words,
    parts,
    probabilities,
    signals,
)
from sureshot.media.lines import Line, Source
from sureshot.models.encoders.bundled import sentence_encoder
from sureshot.store.index import Store
from sureshot.store.lines import FoundLine, WordsRead
from sureshot.store.rows import IndexSettings, VideoRecord
from sureshot.text import EMPTY_WORDS

SIZES = (30, 100, 300, 1000, 300)  # lines of a library
QUERIES = 20  # in a library, for pictures by a sentence; a seventh of all
_DECAY = 2e-3  # of the weights of standardized signals
_PICTURES = ("seen", "scene of its words")  # that lines have words of, and are not meant
_OFTEN = 3  # of a query of these in the fit
_ALIKE = {"O": "0", "I": "l", "L": "1", "S": "5", "B": "8", "E": "F", "A": "4", "T": "7"}
_OTHER = {
    **{"man": "guy", "woman": "lady", "girl": "young woman", "boy": "young man", "guy": "man"},
    **{"talking": "speaking", "speaking": "talking", "shows": "displays", "showing": "presenting"},
    **{"cooking": "preparing food", "car": "vehicle", "video": "clip", "people": "persons"},
    **{"playing": "performing", "singing": "performing a song", "small": "little", "kid": "child"},
    **{"walking": "strolling", "running": "jogging", "explaining": "describing", "big": "large"},
}


class Item(NamedTuple):
    """A line as each source has it, and queries that mean it, by their kind.

    Attributes:
        seen: one or two words of it as one asks for pictures; it is not what they mean.
        scene: a caption of a picture that has some of its words; it is not what that means.
    """

    lines: dict[Source, str]
    queries: dict[str, str]
    seen: str
    scene: str = ""


def items(
    videos: Sequence[str], seed: int, captions: dict[str, list[str]] | None = None
) -> list[Item]:
    """One line of each video, a caption; those of MSR-VTT, or others."""
    made, every = [], captions or data.captions()
    for video in videos:
        some = [c for c in dict.fromkeys(every[video]) if len(c.split()) >= 5]
        if len(some) >= 2:
            line = random.Random(f"{seed} {video}").choice(some)
            made.append(item_of(some, line, f"{seed} {video}"))
    return made


@lru_cache(maxsize=1)
def _everyday() -> Counter[str]:
    """In how many captions a word is."""
    return Counter(w for cs in data.captions().values() for c in cs for w in set(c.lower().split()))


def item_of(captions: Sequence[str], line: str, seed: str) -> Item:
    """A line with the queries that mean it.

    Args:
        captions: the line and others that say the same.
    """
    rng, everyday = random.Random(f"{seed} {line}"), _everyday()
    words, said = line.split(), set(parts(line))
    count = min(len(words), rng.randint(4, 7))
    first = rng.randrange(len(words) - count + 1)
    telling = [word for word in dict.fromkeys(words) if word.lower() not in EMPTY_WORDS]
    rare = sorted(telling, key=lambda word: everyday[word.lower()])
    queries = {
        "rare words": " ".join(rare[: rng.randint(1, 2)]),
        "quote": " ".join(words[first : first + count]),
        "keywords": " ".join(rng.sample(telling, min(len(telling), rng.randint(3, 4)))),
        "reworded": reworded(line, rng),
    }
    others = [c for c in captions if c != line and len(said & set(parts(c))) >= len(said) / 2]
    if others:
        queries["other caption"] = rng.choice(others)
    seen = " ".join(rng.sample(telling, min(len(telling), rng.randint(1, 2))))
    return Item({"subtitles": line, "picture": read(line, rng)}, queries, seen)


def reworded(line: str, rng: random.Random) -> str:
    """A line in other words: other nouns and verbs, no articles, its halves the other way round."""
    words = [_OTHER.get(word, word) for word in line.lower().split()]
    words = [word for word in words if word not in ("a", "an", "the", "is", "are")]
    joint = next((n for n, word in enumerate(words) if n and word in ("in", "on", "at", "with")), 0)
    if joint and rng.random() < 0.5:
        words = [*words[joint:], *words[:joint]]
    return " ".join(words)


def read(text: str, rng: random.Random) -> str:
    """A text with the mistakes of a reader of pictures."""
    letters = (c for c in text.upper() if c != " " or rng.random() > 0.15)
    return "".join(_ALIKE.get(c, c) if rng.random() < 0.03 else c for c in letters)


class Asked(NamedTuple):
    """The lines that a query found, their signals, and which of them is meant, if any."""

    kind: str
    query: str
    found: list[FoundLine]
    signals: np.ndarray
    right: np.ndarray


def asked(
    every: Sequence[Item], scenes: Sequence[Item], source: Source, libraries: int, seed: int
) -> list[Asked]:
    """Queries in libraries of several sizes.

    Args:
        every: what lines are drawn from.
        scenes: what queries for pictures are drawn from.
    """
    rng, done = random.Random(seed), []
    texts = {i.lines[source] for i in every} | {q for i in every for q in i.queries.values()}
    texts |= {text for item in scenes for text in (item.seen, item.lines["subtitles"])}
    texts |= {text for item in every for text in (item.seen, item.scene) if item.scene}
    vectors = _vectors(sorted(texts))
    for number in range(libraries):
        size = min(SIZES[number % len(SIZES)], len(every) - 2 * QUERIES)
        chosen = rng.sample(every, size + 2 * QUERIES)
        inside, outside = chosen[:size], chosen[size:]
        lines = [item.lines[source] for item in inside]
        matrix, words = np.stack([vectors[line] for line in lines]), [set(parts(s)) for s in lines]
        common = Counter(word for one in words for word in one)
        meant = [*outside, *rng.choices(inside, k=3 * QUERIES)]
        asking = [(item, *rng.choice(list(item.queries.items()))) for item in meant]
        there = {item.lines["subtitles"] for item in inside}
        shown = [item for item in scenes if item.lines["subtitles"] not in there]
        alike = [item for item in inside if item.scene]
        alike = rng.sample(alike, min(len(alike), QUERIES // 2))
        asking += [(item, "scene of its words", item.scene) for item in alike]
        shown = rng.sample(shown, QUERIES - len(alike))
        asking += [(item, "scene", item.lines["subtitles"]) for item in shown]
        # Lines that are captions have those words, and are not meant.
        named = rng.sample(inside if scenes is every else scenes, QUERIES - len(alike))
        named += alike
        asking += [(item, "seen", item.seen) for item in named]
        for item, kind, query in asking:
            similar, known = matrix @ vectors[query], set(parts(query))
            shared = np.array([sum(1 / common[word] for word in known & one) for one in words])
            near = [*np.argsort(-similar)[:LOOKED_AT], *np.argsort(-shared)[:LOOKED_AT]]
            rows = list(dict.fromkeys(near))
            found = [
                FoundLine(
                    path=Path("/film.mp4"),
                    line=Line(start=0.0, end=1.0, text=lines[row], source=source),
                    similarity=float(similar[row]),
                )
                for row in rows
            ]
            values = signals(query, found, size)
            right = np.array([_is_right(inside[row], item, kind) for row in rows])
            whole = are_right_together(query, values)
            right |= whole & (right & whole).any()
            done.append(Asked(kind, query, found, values, right))
    return done


def _is_right(one: Item, item: Item, kind: str) -> bool:
    """Whether a line is meant: another one that has the words of the query is as right."""
    if kind.startswith(("seen", "scene")):
        return False
    text = one.lines["subtitles"]
    return text == item.lines["subtitles"] or _has_words(text, item.queries[kind], kind)


def _vectors(texts: Sequence[str]) -> dict[str, np.ndarray]:
    parts_of = [texts[first : first + 256] for first in range(0, len(texts), 256)]
    rows = [row for part in parts_of for row in sentence_encoder().encode(part).sentence]
    return dict(zip(texts, rows, strict=True))


def fit(seed: int, videos: int, libraries: int, speech: Path | None) -> None:
    """Print the weights of each source, and the log loss on each set by weights of the others.

    Args:
        speech: a model of speech; with it weights of speech alone are fitted.
    """
    rng = random.Random(seed)
    photos = {
        photo: [_typed(text) for text in some] for photo, some in data.flickr("train").items()
    }
    captions = items(rng.sample(data.split("train"), videos), seed)
    sets = {
        "captions": captions,
        "photographs": items(rng.sample(sorted(photos), videos), seed, photos),
        "dialogue": talk(videos, rng),
        "dialogue of pictures": talk_of_pictures("train", videos, rng),
    }
    if speech:
        sets = with_speech(sets, speech, "flite", seed)
    for source in _sources(speech):
        done = {
            name: asked(every, captions if "dialogue" in name else every, source, libraries, seed)
            for name, every in sets.items()
        }
        for name, queries in done.items():
            others = [one for other, some in done.items() if other != name for one in some]
            lost = _loss(_fitted(others), queries)
            print(f"  {source}, {name} by weights of the others: {lost:.3f}")
        print(f'    "{source}": (')
        for weights in _fitted([one for some in done.values() for one in some]):
            print(f"        ({', '.join(f'{weight:.3f}' for weight in weights)}),")
        print("    ),")
    print(f"signals: {', '.join(SIGNALS)}; {videos} videos, {libraries} libraries, seed {seed}")


def _sources(speech: Path | None) -> tuple[Source, ...]:
    return ("speech",) if speech else ("subtitles", "picture")


def _typed(caption: str) -> str:
    return caption.rstrip(" .").lower()


def talk(count: int, rng: random.Random) -> list[Item]:
    """So many lines such as people say."""
    return [item_of([text], text, str(rng.random())) for text in spoken(count, rng)]


def with_speech(
    sets: dict[str, list[Item]], model: Path, program: str, seed: int
) -> dict[str, list[Item]]:
    """The items whose lines a model hears when a program says them, with what it hears.

    Of lines that are heard as one, or as the same words, there is the first.
    """
    texts = [item.lines["subtitles"] for some in sets.values() for item in some]
    texts = [text for text in dict.fromkeys(texts) if text.isascii()]
    random.Random(0).shuffle(texts)
    known = voices.heard(texts, model, program, seed)
    found = {}
    for name, some in sets.items():
        by_text: dict[str, Item] = {}
        for item in some:
            if text := known.get(item.lines["subtitles"]):
                by_text.setdefault(text, item._replace(lines={**item.lines, "speech": text}))
        found[name] = list(by_text.values())
    return found


class _Fit:
    """Queries as arrays, and what weights lose on them.

    Attributes:
        rows: the signals of the lines of all queries.
        starts: the first line of each query.
    """

    def __init__(self, done: Sequence[Asked]) -> None:
        sizes = [len(one.found) for one in done]
        self.rows = np.concatenate([one.signals for one in done])
        self.starts = np.cumsum([0, *sizes[:-1]])
        self._of = np.repeat(np.arange(len(done)), sizes)
        self._right = np.concatenate([one.right for one in done])
        self._whole = np.concatenate([are_right_together(one.query, one.signals) for one in done])
        self._there = np.array([one.right.any() for one in done])
        often = np.array([_OFTEN if one.kind in _PICTURES else 1.0 for one in done])
        self.often = often / often.sum()

    def lost(self, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The log loss of each query by the nested logit of `probabilities`, and its slopes."""
        of, starts, there = self._of, self.starts, self._there
        together = np.maximum.reduceat(np.where(self._whole, logits, -np.inf), starts)
        # Lines that are right together are one alternative, the likeliest of them.
        logits = np.where(self._whole & (logits < together[of]), -np.inf, logits)
        most = np.maximum.reduceat(logits, starts)
        odds = np.exp(WITHIN * (logits - most[of]))
        every, right = np.add.reduceat(odds, starts), np.add.reduceat(odds * self._right, starts)
        right = np.where(there, right, every)
        any_line = most + np.log(every) / WITHIN
        sign = np.where(there, -1, 1)
        lost = np.logaddexp(0, sign * any_line) + np.log(every / right)
        share, meant = odds / every[of], odds * self._right / right[of]
        slopes = (sign * expit(sign * any_line))[of] * share
        return lost, slopes + np.where(there[of], WITHIN * (share - meant), 0)

    def weights(self) -> Float[np.ndarray, " signals+1"]:
        """Weights of least log loss, with a little decay so that it has one minimum."""
        mean, scale = self.rows.mean(0), self.rows.std(0)
        scale = np.where(scale > 1e-9, scale, 1)  # what is the same everywhere varies by rounding
        rows = np.column_stack([(self.rows - mean) / scale, np.ones(len(self.rows))])
        often = np.repeat(self.often, np.diff([*self.starts, len(rows)]))

        def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
            lost, slopes = self.lost(rows @ weights)
            decay = _DECAY * np.append(weights[:-1], 0)
            return float(self.often @ lost + (decay * weights).sum() / 2), (
                often * slopes
            ) @ rows + decay

        found = minimize(loss, np.zeros(rows.shape[1]), jac=True).x
        weights = found[:-1] / scale
        return np.append(weights, found[-1] - weights @ mean)


def _parts(done: Sequence[Asked]) -> list[_Fit]:
    """The queries of many words, and those of one or two."""
    few = [has_few_words(one.signals) for one in done]
    return [
        _Fit([one for one, is_few in zip(done, few, strict=True) if is_few == which])
        for which in (False, True)
    ]


def _fitted(done: Sequence[Asked]) -> list[Float[np.ndarray, " signals+1"]]:
    """Weights for queries of many words, and for those of one or two."""
    return [part.weights() for part in _parts(done)]


def _loss(weights: Sequence[Float[np.ndarray, " signals+1"]], done: Sequence[Asked]) -> float:
    """Mean log loss of what is meant: a line, or none."""
    lost = [
        part.lost(part.rows @ one[:-1] + one[-1])[0]
        for part, one in zip(_parts(done), weights, strict=True)
    ]
    return float(np.concatenate(lost).mean())


def measure_lines(seed: int, libraries: int, speech: Path | None, *, spoken_lines: bool) -> None:
    """Print how often the first line is right, and how far percentages are off."""
    captions = items([*data.split("val"), *data.split("test")], seed)
    every = captions
    if spoken_lines:
        every = talk_of_pictures("test", len(captions), random.Random(seed))
    if speech:
        (every,) = with_speech({"": every}, speech, "espeak-ng", seed).values()
    for source in _sources(speech):
        done = asked(every, captions, source, libraries, seed)
        by_kind: dict[str, list[bool]] = defaultdict(list)
        said, right = [], []
        for one in done:
            shares = probabilities(one.query, one.found, one.signals)[0]
            top = int(shares.argmax())
            said.append(shares[top])
            right.append(bool(one.right[top]))
            if one.right.any():
                by_kind[one.kind].append(right[-1])
        print(f"{source}: {len(done)} queries, three of seven for a line that is there")
        for kind, hits in sorted(by_kind.items()):
            print(f"  {kind:>14}: R@1 {100 * np.mean(hits):5.1f} % of {len(hits)}")
        print_calibration(np.array(said), np.array(right))


def print_calibration(said: np.ndarray, right: np.ndarray) -> None:
    """Print what was said of first hits and what came true, in ten parts of as many."""
    order = np.argsort(said, kind="stable")
    chunks = [chunk for chunk in np.array_split(order, 10) if len(chunk)]
    rows = [(said[c].mean(), right[c].mean(), len(c)) for c in chunks]
    error = sum(abs(s - r) * n for s, r, n in rows) / len(said)
    print(f"  said {100 * said.mean():.1f} %, right {100 * right.mean():.1f} %, ECE {error:.3f}")
    print("  " + "  ".join(f"{100 * s:.0f}:{100 * r:.0f}" for s, r, _ in rows))


def measure_films(to: Path, seed: int, per_video: int, *, dialogue: bool) -> None:
    """Print what lines cost queries about pictures, and how well lines are found in an index.

    Each test video gets lines as subtitles next to it: captions of training videos, which is the
    hardest case, as captions are asked for pictures as well; or sentences such as people say. A
    third of the searches whose percentages are counted mean a line, a third a picture by a
    sentence or keywords, and a third what is not there.
    """
    ids, rng = data.split("test"), random.Random(seed)
    count = len(ids) * per_video + 600
    if dialogue:
        every = talk(count, rng)
    else:
        every = items(rng.sample(data.split("train"), count), seed + 1)
    films, sentences = to / "films", data.jsfusion()
    films.mkdir(parents=True, exist_ok=True)
    meant: list[tuple[str, str, str, float]] = []  # kind, query, video, second
    lines: dict[tuple[str, float], str] = {}
    for video in ids:
        target = films / f"{video}.mp4"
        if not target.exists():
            shutil.copy(data.folder("msrvtt") / "videos" / f"{video}.mp4", target)
        cues = []
        for number in range(per_video):
            item, start = every.pop(), 0.2 + 0.9 * number
            lines[video, start] = item.lines["subtitles"]
            cues.append(_cue(number + 1, start, start + 0.8, item.lines["subtitles"]))
            kind = rng.choice(list(item.queries))
            meant.append((kind, item.queries[kind], video, start))
        (films / f"{video}.srt").write_text("\n".join(cues))
    db = to / "index"
    library.index(films, db=db, words="none")
    shutil.rmtree(db / "lines.lance", ignore_errors=True)  # of an earlier run
    shown_by = {"sentences": [sentences[video] for video in ids]}
    shown_by["keywords"] = [_keywords(sentences[video], rng) for video in ids]
    searcher, before = library.open_index(db), {}
    for name, texts in shown_by.items():
        found = zip(ids, searcher.search_many(texts), strict=True)
        before[name] = [answer[0].path.stem == video for video, answer in found]
    library.index(films, db=db, words="subtitles")
    searcher = library.open_index(db)
    shown: dict[str, list[tuple[float, bool]]] = {}
    for name, texts in shown_by.items():
        listed = [answer[0] for answer in searcher.search_many(texts)]
        after = [hit.path.stem == video for video, hit in zip(ids, listed, strict=True)]
        shown[name] = [
            (hit.probability or 0.0, right) for hit, right in zip(listed, after, strict=True)
        ]
        over = np.mean([hit.source != "frames" and (hit.probability or 0) > 0.9 for hit in listed])
        print(
            f"{len(ids)} {name} about pictures, {len(lines)} lines: R@1 without lines "
            f"{100 * np.mean(before[name]):.1f}, with them {100 * np.mean(after):.1f}; a line is "
            f"first with over 90 % in {100 * over:.1f} %"
        )
    by_kind: dict[str, list[bool]] = defaultdict(list)
    late, shown["lines"] = [0.0], []
    chosen = rng.sample(meant, min(600, len(meant)))
    answers = searcher.search_many([query for _, query, _, _ in chosen])
    for (kind, query, video, start), answer in zip(chosen, answers, strict=True):
        hit = answer[0]
        right = hit.path.stem == video and abs(hit.peak - start) <= 0.5
        late += [abs(hit.peak - start)] if right else []
        # Another line that has the words asked for is as right.
        right |= any(_has_words(line.text, query, kind) for line in hit.lines)
        by_kind[kind].append(right)
        shown["lines"].append((hit.probability or 0.0, right))
    absent = [item.queries[rng.choice(list(item.queries))] for item in every]
    shown["absent"] = [
        (
            answer[0].probability or 0.0,
            any(_has_words(s.text, query, "quote") for s in answer[0].lines),
        )
        for query, answer in zip(absent, searcher.search_many(absent), strict=True)
    ]
    for kind, hits in sorted(by_kind.items()):
        print(f"  {kind:>14}: R@1 {100 * np.mean(hits):5.1f} % of {len(hits)}, right within 0.5 s")
    print(
        f"  all: {100 * np.mean([h for hits in by_kind.values() for h in hits]):.1f} %; farthest "
        f"from its time {max(late):.3f} s"
    )
    for name, pairs in shown.items():
        print(f"first hits of searches for {name}:")
        print_calibration(*(np.array(column) for column in zip(*pairs, strict=True)))
    pictures = rng.sample([*shown["sentences"], *shown["keywords"]], 600)
    mixed = [*shown["lines"], *pictures, *shown["absent"]]
    print("a third each:")
    print_calibration(*(np.array(column) for column in zip(*mixed, strict=True)))


_SPOKEN = (
    "I told you not to give the {one} to {who}.|Did {who} see the {one} at the {two}?",
    "You never said that {who} had a {one}.|Why would {who} come here without a {one}?",
    "If {who} finds out about the {one}, we are finished.|Meet me at the {one} and come alone.",
    "I swear I left the {one} in the {two}.|Nobody has seen {who} since the {one}.",
    "Tell {who} that I am sorry about the {one}.|I can't believe {who} lied to us about the {one}.",
    "Do you still love {who}?|We have to leave the {one} tonight, with or without {who}.",
    "Somebody stole a {one} from {who} last night.|Ask {who}, not me, what happened to the {one}.",
    "It's not your fault that {who} was at the {one}.|What if the {one} was never in the {two}?",
)
_FREQUENT = 500, 8000  # ranks of English words that dialogue is about


def spoken(count: int, rng: random.Random) -> list[str]:
    """Different sentences such as people say in films, made by rules; no captions."""
    listed = files("symspellpy").joinpath("frequency_dictionary_en_82_765.txt")
    words = [line.split()[0] for line in listed.read_text("utf-8-sig").splitlines()]
    words = [word for word in words[slice(*_FREQUENT)] if len(word) > 3]
    forms, made = "|".join(_SPOKEN).split("|"), dict[str, None]()
    names = FIRST_NAMES.title().split()
    while len(made) < count:
        one, two = rng.sample(words, 2)
        made[rng.choice(forms).format(one=one, two=two, who=rng.choice(names))] = None
    return list(made)


_DOING = re.compile(r"\b(\w{2,})ing (?:an?|the|his|her|their|some) (\w{3,})")
_OF_PICTURES = (
    "{do} the {thing} please|I want to {do} the {thing} before they come home",
    "can you {do} a {thing} for me|who taught you to {do} a {thing} like that",
    "don't {do} that {thing}|I never asked you to {do} my {thing}",
    "why did you {do} the {thing} without me|we have to {do} this {thing} today",
    "where is my {thing}|did you bring the {thing} that I asked for",
    "how much is the {thing}|my father gave me this {thing} last year",
    "I think you broke the {thing}|that is not your {thing}",
    "let us {do} the {thing} tomorrow|you said you would {do} it, and where is the {thing} now",
    "look at this {thing}|I dreamt of a {thing} again",
    "he died when he tried to {do} the {thing}|she says that you {do} a {thing} better than I do",
)


def talk_of_pictures(split: str, count: int, rng: random.Random) -> list[Item]:
    """So many lines such as people say, of which a quarter name what a caption shows.

    These have other forms in the training videos than in the rest.
    """
    forms = [both.split("|")[split != "train"] for both in _OF_PICTURES]
    captions, everyday, made = data.captions(), _everyday(), dict[str, Item]()
    shown = [(video, text) for video in data.split(split) for text in captions[video]]
    rng.shuffle(shown)
    for video, caption in shown:
        found = _DOING.search(caption)
        if not found or found[2] in EMPTY_WORDS:
            continue
        ending, thing = found[1], found[2]
        # playing, driving, cutting
        do = max((ending, f"{ending}e", ending[:-1]), key=lambda word: everyday[word])
        line = rng.choice(forms).format(do=do, thing=thing)
        if line not in made and len(made) < count // 4:
            item = item_of([line], line, f"{video} {rng.random()}")
            seen = rng.choice([f"{ending}ing {thing}", thing, thing])
            who = rng.choice(["a man is", "a woman is", "a person is", "someone is", "people are"])
            scene = rng.choice([caption, f"{who} {found[0]}", f"{who} {ending}ing a {thing}"])
            made[line] = item._replace(seen=seen, scene=scene)
    return [*made.values(), *talk(count - len(made), rng)]


def _has_words(line: str, query: str, kind: str) -> bool:
    """Whether a line has the words of a query: in a row of a quote, any of rare words."""
    said, words = f" {line} ".lower(), f" {query} ".lower()
    if kind == "quote":
        return words in said
    return kind == "rare words" and all(f" {word} " in said for word in words.split())


def _keywords(sentence: str, rng: random.Random) -> str:
    """One or two words of a sentence, as one asks for pictures."""
    words = [w for w in dict.fromkeys(sentence.split()) if w.lower() not in EMPTY_WORDS]
    return " ".join(rng.sample(words, min(len(words), rng.randint(1, 2)))) or sentence


def _cue(number: int, start: float, end: float, text: str) -> str:
    def clock(second: float) -> str:
        return f"00:00:{second:06.3f}".replace(".", ",")

    return f"{number}\n{clock(start)} --> {clock(end)}\n{text}\n"


def measure_table(count: int, seed: int) -> None:
    """Print bytes and milliseconds of so many lines, made of two captions each."""
    rng, draw = random.Random(seed), np.random.default_rng(seed)
    every = [caption.split() for some in data.captions().values() for caption in some]

    def line(number: int) -> Line:
        one, other = rng.choice(every), rng.choice(every)
        text = " ".join([*one[: len(one) // 2 + 1], *other[len(other) // 2 :]])
        return Line(start=2.0 * number, end=2.0 * number + 2, text=text, source="subtitles")

    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(folder, IndexSettings(model="tiny"), "none", 24)
        for first in range(0, count, 50_000):
            vectors = draw.standard_normal((50_000, 384)).astype(np.float32)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            read = [
                WordsRead(
                    video=VideoRecord(
                        path=Path(f"/{first}-{film}.mp4"), kind="file", size=1, mtime_ns=1
                    ),
                    source="subtitles",
                    stamp="1",
                    lines=[line(number) for number in range(1000)],
                    vectors=vectors[1000 * film :][:1000],
                )
                for film in range(50)
            ]
            store.lines.write(read)
        plain = store.bytes_on_disk()
        store.compact()
        whole = store.bytes_on_disk()
        print(f"{count:,} lines: {plain / count:.0f} bytes each, {whole / count:.0f} indexed")
        for what in ("sentence", "phrase"):
            took = []
            for words in rng.sample(every, 20):
                began, vector = time.perf_counter(), draw.standard_normal(384).astype(np.float32)
                if what == "sentence":
                    store.lines.search(" ".join(words), vector, LOOKED_AT)
                else:
                    store.lines.having(" ".join(words[:3]), vector, LOOKED_AT)
                took.append(1000 * (time.perf_counter() - began))
            print(f"  {what}: {np.median(took):.0f} ms, at most {max(took):.0f} ms")


def main() -> None:
    """Run one of the benchmarks."""
    asks = argparse.ArgumentParser()
    asks.add_argument("what", choices=["fit", "lines", "films", "table"])
    asks.add_argument("--seed", type=int, default=0)
    asks.add_argument("--videos", type=int, default=1400)
    asks.add_argument("--libraries", type=int, default=15)
    asks.add_argument("--lines", type=int, default=3, help="of each film")
    asks.add_argument("--dialogue", action="store_true", help="lines that are no captions")
    asks.add_argument("--speech", type=Path, help="a model that hears voices, of speech alone")
    asks.add_argument("--to", type=Path)
    asks.add_argument("--count", type=int, default=1_000_000, help="lines of the table")
    given = asks.parse_args()
    if given.what == "fit":
        fit(given.seed, given.videos, given.libraries, given.speech)
    elif given.what == "lines":
        measure_lines(given.seed + 1, given.libraries, given.speech, spoken_lines=given.dialogue)
    elif given.what == "films":
        measure_films(given.to, given.seed, given.lines, dialogue=given.dialogue)
    else:
        measure_table(given.count, given.seed)


if __name__ == "__main__":
    main()
