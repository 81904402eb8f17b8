"""A synthetic dataset: moving shapes whose every fact is known, written by ``sureshot synthetic``.

Files:
    ``synthetic.json`` has the options, every video's facts and every caption with what it was to
    name, what it names, and how many videos of its split it fits; ``videos`` has the videos.
    `read_truth` gives which videos each caption fits, and the Bayes scores.

Differs:
    Other datasets do not say which videos a caption fits. Here relevance is complete, so that the
    uncertainty of a system can be compared with the true one.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from sureshot.datasets.annotation import check_set, expecting, read_annotation
from sureshot.datasets.split import SPLITS, Listing, Split
from sureshot.errors import SureshotError
from sureshot.settings import Ranged, Within, build, to_values

# The values of each fact, and the words for each value.
FACTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "colour": {
        "red": ("red", "scarlet", "crimson"),
        "green": ("green", "emerald"),
        "blue": ("blue", "azure"),
        "yellow": ("yellow", "golden"),
        "white": ("white", "pale"),
        "purple": ("purple", "violet"),
    },
    "shape": {
        "circle": ("circle", "disc", "ball"),
        "square": ("square", "box"),
        "triangle": ("triangle", "wedge"),
        "cross": ("cross", "plus sign"),
        "ring": ("ring", "hoop"),
    },
    "size": {
        "small": ("small", "little", "tiny"),
        "large": ("large", "big", "huge"),
    },
    "place": {
        "top left": ("at the top left", "in the upper left corner"),
        "top right": ("at the top right", "in the upper right corner"),
        "bottom left": ("at the bottom left", "in the lower left corner"),
        "bottom right": ("at the bottom right", "in the lower right corner"),
    },
    "direction": {
        "left": ("moves left", "drifts leftwards", "goes to the left"),
        "right": ("moves right", "drifts rightwards", "goes to the right"),
        "up": ("moves up", "rises", "climbs"),
        "down": ("moves down", "falls", "sinks"),
    },
}
_ANYTHING = ("thing", "shape", "object")  # where a caption names no shape
_SHOWN = ("is seen", "appears", "is there")  # where it names no direction
_JOINTS = (", then ", ", followed by ", "; after that ")

Scene = Mapping[str, str]  # a value of each fact
Said = Mapping[str, str]  # values of the facts that are named


def sentence(parts: Sequence[Said], draw: np.random.Generator) -> str:
    """A caption that says these facts of each scene in their order, at least one of each.

    Examples:
        >>> sentence([{"colour": "red", "direction": "up"}], np.random.default_rng(0))
        'a scarlet shape moves up'
    """
    joint = _JOINTS[draw.integers(len(_JOINTS))]
    first, *others = parts
    return joint.join([_clause(first, draw, leads=True), *(_clause(one, draw) for one in others)])


def _clause(said: Said, draw: np.random.Generator, *, leads: bool = False) -> str:
    def word(fact: str, usual: tuple[str, ...] = ()) -> str:
        words = FACTS[fact][said[fact]] if fact in said else usual
        return words[draw.integers(len(words))] if words else ""

    noun = word("shape", _ANYTHING)
    adjectives = [found for fact in ("size", "colour") if (found := word(fact))]
    verb, place = word("direction", _SHOWN), word("place")
    named = " ".join([*adjectives, noun])
    thing = f"{'an' if named[0] in 'aeiou' else 'a'} {named}"
    if place and leads and draw.random() < 0.3:
        return f"{place} {thing} {verb}"
    return f"{thing} {verb}" + (f" {place}" if place else "")


_KINDS = tuple(FACTS)
_COMMON = 8  # scenes that many videos share
_TRIES = 1000  # draws of a video that is unlike all others
_MOST = 4  # scenes of a video


@dataclass(frozen=True, slots=True)
class SyntheticOptions(Ranged):
    """Options of a synthetic dataset.

    Attributes:
        ambiguity: 0 to 1. Of the five facts of a scene a caption names one, and each of the other
            four with probability 1 - ambiguity.
        whole: share of captions that are about all scenes of a video; the others are about one.
        common: chance of each scene but one of a video to be one of eight scenes that many videos
            share, 0 to 1. A caption about such a scene fits other videos too: these are the false
            negatives of a batch.
    """

    key: ClassVar[str] = "options"

    train: Annotated[int, Within(2, 1_000_000)] = 1200
    val: Annotated[int, Within(2, 1_000_000)] = 200
    test: Annotated[int, Within(2, 1_000_000)] = 300
    captions: Annotated[int, Within(1, 1000)] = 4
    ambiguity: Annotated[float, Within(0, 1)] = 0.4
    whole: Annotated[float, Within(0, 1)] = 0.0
    common: Annotated[float, Within(0, 1)] = 0.3
    noise: Annotated[float, Within(0, 1)] = 0.0  # share of captions in which one fact is wrong
    fewest: Annotated[int, Within(1, _MOST)] = 2  # least number of scenes of a video, 1 to 4
    most: Annotated[int, Within(1, _MOST)] = _MOST  # largest number of scenes of a video, 1 to 4
    seed: Annotated[int, Within(0, 2**63 - 1)] = 0  # everything follows from it

    def __post_init__(self) -> None:
        """Refuse values out of range and what does not go together."""
        Ranged.__post_init__(self)
        if self.fewest > self.most:
            raise SureshotError(
                f"Setting options.fewest is {self.fewest} and options.most {self.most}; a video "
                "cannot have more scenes than the most there are."
            )


@dataclass(frozen=True, slots=True)
class SyntheticVideo:
    """A video: its scenes in their order, and the number that its pictures are drawn from."""

    id: str
    scenes: tuple[Scene, ...]
    pixels: int


@dataclass(frozen=True, slots=True)
class SyntheticCaption:
    """A caption."""

    text: str
    video: int  # number within the split
    scene: int | None  # number of the one it is about; None is the whole video
    meant: tuple[Said, ...]  # facts that it was to name, of each scene it is about
    said: tuple[Said, ...]  # facts that its words name; others than meant where a word is wrong


@dataclass(frozen=True, slots=True)
class SyntheticSplit:
    """One split; the captions of a video stand side by side."""

    name: str
    options: SyntheticOptions
    videos: tuple[SyntheticVideo, ...]
    captions: tuple[SyntheticCaption, ...]


def generate(options: SyntheticOptions) -> tuple[SyntheticSplit, ...]:
    """The three splits of a dataset; no two videos are alike.

    Options of captions alone do not change the videos.
    """
    draw = np.random.default_rng((options.seed, 0))
    common = [_scene(draw) for _ in range(_COMMON)]
    seen: set[tuple[tuple[str, ...], ...]] = set()
    parts = []
    for number, name in enumerate(SPLITS):
        draw = np.random.default_rng((options.seed, 1, number))
        videos = [
            _video(f"{name}-{place:05d}", options, common, seen, draw)
            for place in range(getattr(options, name))
        ]
        draw = np.random.default_rng((options.seed, 2, number))
        captions = [
            _caption(video, place, options, draw)
            for place, video in enumerate(videos)
            for _ in range(options.captions)
        ]
        split = SyntheticSplit(name, options, videos=tuple(videos), captions=tuple(captions))
        parts.append(split)
    return tuple(parts)


def _scene(draw: np.random.Generator) -> Scene:
    return {fact: str(draw.choice(list(FACTS[fact]))) for fact in _KINDS}


def _video(
    name: str,
    options: SyntheticOptions,
    common: Sequence[Scene],
    seen: set[tuple[tuple[str, ...], ...]],
    draw: np.random.Generator,
) -> SyntheticVideo:
    """A video unlike those before; at least one of its scenes is not shared."""
    for _ in range(_TRIES):
        count = int(draw.integers(options.fewest, options.most + 1))
        own = int(draw.integers(count))
        scenes = tuple(
            common[int(draw.integers(len(common)))]
            if place != own and draw.random() < options.common
            else _scene(draw)
            for place in range(count)
        )
        key = tuple(tuple(scene.values()) for scene in scenes)
        if key not in seen:
            seen.add(key)
            return SyntheticVideo(id=name, scenes=scenes, pixels=int(draw.integers(2**31)))
    raise SureshotError(f"No further video differs from all {len(seen)} others; ask for fewer.")


def _caption(
    video: SyntheticVideo, number: int, options: SyntheticOptions, draw: np.random.Generator
) -> SyntheticCaption:
    whole = draw.random() < options.whole
    scene = None if whole else int(draw.integers(len(video.scenes)))
    about = video.scenes if scene is None else (video.scenes[scene],)
    meant = tuple(_named(one, options.ambiguity, draw) for one in about)
    said = list(meant)
    if draw.random() < options.noise:
        places = [(place, fact) for place, one in enumerate(meant) for fact in one]
        place, fact = places[draw.integers(len(places))]
        others = [value for value in FACTS[fact] if value != meant[place][fact]]
        said[place] = {**meant[place], fact: str(draw.choice(others))}
    return SyntheticCaption(
        text=sentence(said, draw), video=number, scene=scene, meant=meant, said=tuple(said)
    )


def _named(scene: Scene, ambiguity: float, draw: np.random.Generator) -> Said:
    """The facts that a caption names: one, and each other with probability 1 - ambiguity."""
    first = draw.integers(len(_KINDS))
    chosen = draw.random(len(_KINDS)) >= ambiguity
    chosen[first] = True
    return {fact: scene[fact] for fact, named in zip(_KINDS, chosen, strict=True) if named}


_NEVER = -1e4  # in place of the logarithm of 0: scores stay numbers
_VALUES = {fact: {value: n for n, value in enumerate(values)} for fact, values in FACTS.items()}
_MANY = tuple(len(values) for values in FACTS.values())

_Parts = Int[np.ndarray, "videos parts scenes facts"]  # scenes of each part of each video
_Point = Float[np.ndarray, " 2"]


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """Which videos of a split its captions fit.

    Attributes:
        fits: whether all that a caption meant to name holds for a video; its own video always fits.
        bayes: log-probability of a caption given a video, up to a constant per caption; -10,000
            where it is impossible.
    """

    fits: Bool[np.ndarray, "captions videos"]
    bayes: Float[np.ndarray, "captions videos"]

    @property
    def videos_that_fit(self) -> Int[np.ndarray, " captions"]:
        """Number of videos of the split that each caption fits, its own among them."""
        return self.fits.sum(1)

    def posterior(self) -> Float[np.ndarray, "captions videos"]:
        """Probability of each video that the caption was written for it, under a uniform prior.

        Uniform for captions whose words fit no video.
        """
        odds = np.exp(self.bayes - self.bayes.max(1, keepdims=True))
        return odds / odds.sum(1, keepdims=True)


def truth_of(part: SyntheticSplit) -> GroundTruth:
    """The truth about all captions and videos of a split."""
    scenes, count = _numbers(part)
    real = np.arange(scenes.shape[1]) < count[:, None]
    fits = np.zeros((len(part.captions), len(part.videos)), bool)
    bayes = np.full(fits.shape, _NEVER, np.float32)
    for row, caption in enumerate(part.captions):
        length = len(caption.said)
        if caption.scene is None:  # about the whole video, which has so many scenes
            parts, there = scenes[:, None, :length], (count == length)[:, None]
        else:  # about one of the scenes, any of them as likely
            parts, there = scenes[:, :, None], real
        fits[row] = (~_missed(caption.meant, parts).any((2, 3)) & there).any(1)
        each = _chance(caption.said, parts, part.options.noise) * there
        chance = each.sum(1) / np.maximum(there.sum(1), 1)
        possible = chance > 0
        bayes[row, possible] = np.log(chance[possible])
    return GroundTruth(fits, bayes)


def _numbers(
    part: SyntheticSplit,
) -> tuple[Int[np.ndarray, "videos scenes facts"], Int[np.ndarray, " videos"]]:
    """The value of each fact of each scene as a number, -1 where there is no scene; how many."""
    count = np.array([len(video.scenes) for video in part.videos])
    scenes = np.full((len(count), count.max(), len(FACTS)), -1)
    for row, video in zip(scenes, part.videos, strict=True):
        row[: len(video.scenes)] = [_numbered(scene) for scene in video.scenes]
    return scenes, count


def _numbered(said: Said) -> list[int]:
    """The value of each fact as a number; -1 where it is not named."""
    return [values.get(said.get(fact, ""), -1) for fact, values in _VALUES.items()]


def _missed(said: Sequence[Said], scenes: _Parts) -> Bool[np.ndarray, "videos parts scenes facts"]:
    """The facts named of each scene that differ from it."""
    wanted = np.array([_numbered(one) for one in said])
    return (scenes != wanted) & (wanted >= 0)


def _chance(
    said: Sequence[Said], scenes: _Parts, noise: float
) -> Float[np.ndarray, "videos parts"]:
    """Probability of these words for these scenes: all facts right, or one of them wrong."""
    missed = _missed(said, scenes)
    named = sum(len(one) for one in said)
    slip = (missed / (named * (np.array(_MANY) - 1.0))).sum((2, 3))
    wrong = missed.sum((2, 3))
    return np.where(wrong == 0, 1.0 - noise, np.where(wrong == 1, noise * slip, 0.0))


PROTOCOLS = {"all": ""}
FILE, VIDEOS = "synthetic.json", "videos"  # in the folder of a dataset


def read(root: Path, split: str, protocol: str) -> Listing:
    """The listing of one split."""
    part = read_part(root, split)
    captions: dict[str, list[str]] = {video.id: [] for video in part.videos}
    for caption in part.captions:
        captions[part.videos[caption.video].id].append(caption.text)
    return Listing(protocol=protocol, captions=captions, expected=len(part.videos))


def read_part(root: Path, split: str) -> SyntheticSplit:
    """All facts of one split."""
    path = root / FILE
    if not path.exists():
        check_set(root)
        raise SureshotError(
            f"{root} has no {FILE}; it is no synthetic dataset. "
            f"Write one: sureshot synthetic --to {root}"
        )
    return _part(path, split, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=6)
def _part(path: Path, split: str, _changed: int) -> SyntheticSplit:
    """A split of a file at a modification time, cached for the runs of a table."""
    with expecting(path, "what `sureshot synthetic` writes"):
        data: Any = read_annotation(path)
        values = {one["name"]: one for one in data["splits"]}[split]
        number = {one["id"]: place for place, one in enumerate(values["videos"])}
        captions = [
            {"text": one["caption"], "video": number[one["video"]]}
            | {name: one[name] for name in ("scene", "meant", "said")}
            for one in values["captions"]
        ]
        held = {"name": split, "options": data["options"], "captions": captions}
        return build(SyntheticSplit, {**held, "videos": values["videos"]}, FILE)


@functools.lru_cache(maxsize=6)
def _truth(path: Path, split: str, changed: int) -> GroundTruth:
    return truth_of(_part(path, split, changed))


def written(parts: Sequence[SyntheticSplit]) -> dict[str, Any]:
    """What ``synthetic.json`` holds."""
    return {
        "format": 1,
        "options": to_values(parts[0].options),
        "facts": {fact: list(values) for fact, values in FACTS.items()},
        "splits": [
            {
                "name": part.name,
                "videos": to_values(part.videos),
                "captions": [
                    {
                        "caption": caption.text,
                        "video": part.videos[caption.video].id,
                        "scene": caption.scene,
                        "meant": to_values(caption.meant),
                        "said": to_values(caption.said),
                        "videos_that_fit": int(count),
                    }
                    for caption, count in zip(
                        part.captions, truth_of(part).videos_that_fit, strict=True
                    )
                ],
            }
            for part in parts
        ],
    }


def read_truth(split: Split) -> GroundTruth:
    """The ground truth of all or part of a split, in the order of that split."""
    if split.dataset != "synthetic" or split.root is None:
        raise SureshotError(
            f"{split.title()} does not say which videos a caption fits; only synthetic data does: "
            'dataset = "synthetic", see `sureshot synthetic --help`.'
        )
    part = read_part(split.root, split.name)
    number = {video.id: place for place, video in enumerate(part.videos)}
    columns = [number[item.id] for item in split.items]
    own: dict[int, list[int]] = {}
    for row, caption in enumerate(part.captions):
        own.setdefault(caption.video, []).append(row)
    rows = [row for column in columns for row in own[column]]
    if [part.captions[row].text for row in rows] != split.texts():
        raise SureshotError(f"The captions of {split.title()} are not those of {split.root}.")
    path = split.root / FILE
    whole = _truth(path, split.name, path.stat().st_mtime_ns)
    return GroundTruth(whole.fits[rows][:, columns], whole.bayes[rows][:, columns])


SIDE = 64  # pixels of a frame
RATE = 4  # frames per second
PER_SCENE = 4  # frames per scene
_COLOURS = {
    "red": (225, 40, 40),
    "green": (40, 175, 60),
    "blue": (50, 80, 230),
    "yellow": (240, 215, 40),
    "white": (245, 245, 245),
    "purple": (150, 50, 190),
}
_RADIUS = {"small": 7.0, "large": 12.0}  # pixels
_CENTRES = {
    "top left": (16.0, 16.0),
    "top right": (16.0, 48.0),
    "bottom left": (48.0, 16.0),
    "bottom right": (48.0, 48.0),
}  # row, column
_STEPS = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}
_STEP = 2.0  # pixels from frame to frame
_TRAIL = 10  # pixels of shadow behind the shape
_JITTER = 1.5  # most pixels off the middle of its place
_MIDDLES = np.arange(SIDE) + 0.5  # of pixels
_GROUND, _NOISE = (60, 130), 6.0  # grey levels of the ground, deviation of its texture


def frames_of(
    scenes: Sequence[Scene], draw: np.random.Generator
) -> UInt8[np.ndarray, "frames side side 3"]:
    """RGB frames of a video, `PER_SCENE` of each scene.

    What captions never say is drawn at random: how bright the ground is, its texture, and where
    exactly a shape begins.
    """
    noise = draw.normal(draw.uniform(*_GROUND), _NOISE, (SIDE, SIDE, 1))
    ground = np.repeat(noise, 3, axis=2)
    pictures = []
    for scene in scenes:
        centre = np.array(_CENTRES[scene["place"]]) + draw.uniform(-_JITTER, _JITTER, 2)
        step = np.array(_STEPS[scene["direction"]], float)
        for number in range(PER_SCENE):
            at = centre + step * _STEP * (number - (PER_SCENE - 1) / 2)
            pictures.append(_painted(ground.copy(), scene, at, step))
    return np.stack(pictures)


def _painted(
    picture: Float[np.ndarray, "side side 3"], scene: Scene, at: _Point, step: _Point
) -> UInt8[np.ndarray, "side side 3"]:
    radius, colour = _RADIUS[scene["size"]], np.array(_COLOURS[scene["colour"]], float)
    for behind in range(_TRAIL, 0, -2):  # the trail shows the direction in a single frame
        back = at - step * (radius * 0.6 + behind)
        spot = _covered("circle", back, radius * 0.35)
        picture[spot] = 0.55 * picture[spot] + 0.45 * colour
    picture[_covered(scene["shape"], at, radius)] = colour
    return np.clip(picture, 0, 255).astype(np.uint8)


def _covered(shape: str, at: _Point, radius: float) -> Bool[np.ndarray, "side side"]:
    down, right = _MIDDLES[:, None] - at[0], _MIDDLES[None] - at[1]
    far = np.hypot(down, right)
    match shape:
        case "circle":
            return far <= radius
        case "ring":
            return (far <= radius) & (far >= radius * 0.55)
        case "square":
            return np.maximum(abs(down), abs(right)) <= radius * 0.85
        case "cross":
            thin = np.minimum(abs(down), abs(right)) <= radius * 0.3
            return thin & (np.maximum(abs(down), abs(right)) <= radius)
        case _:  # triangle, its point up
            return (down <= radius * 0.8) & (abs(right) <= (down + radius) * 0.55)
