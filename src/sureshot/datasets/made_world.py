"""A made world: videos and captions whose every fact is known.

Nothing is downloaded: a seed and a few dials give the facts of all videos, and the facts give the
pictures (`sureshot.datasets.made_frames`), the captions and the truth about them
(`sureshot.datasets.made_truth`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from sureshot.datasets.made_facts import FACTS, Said, Scene, sentence
from sureshot.errors import SureshotError
from sureshot.settings import Ranged, Within

SPLITS = ("train", "val", "test")
_KINDS = tuple(FACTS)
_COMMON = 8  # scenes that many videos share
_TRIES = 1000  # draws of a video that is unlike all others
_MOST = 4  # scenes of a video


@dataclass(frozen=True, slots=True)
class MadeDials(Ranged):
    """What a made world is like.

    Attributes:
        train: videos to train on.
        val: videos to choose on.
        test: videos to test on.
        captions: captions of a video.
        ambiguity: how little a caption says, 0 to 1. Of the five facts of a scene it names one and
            each of the other four with the chance 1 - ambiguity.
        whole: share of captions that are about all scenes of a video; the others are about one.
        common: chance of each scene but one of a video to be one of eight scenes that many videos
            share, 0 to 1. A caption about such a scene fits other videos too: these are the false
            negatives of a batch.
        noise: share of captions in which one fact is said wrong.
        fewest: least number of scenes of a video, 1 to 4.
        most: largest number of scenes of a video, 1 to 4.
        seed: number that everything is drawn from.
    """

    at: ClassVar[str] = "dials"

    train: Annotated[int, Within(2, 1_000_000)] = 1200
    val: Annotated[int, Within(2, 1_000_000)] = 200
    test: Annotated[int, Within(2, 1_000_000)] = 300
    captions: Annotated[int, Within(1, 1000)] = 4
    ambiguity: Annotated[float, Within(0, 1)] = 0.4
    whole: Annotated[float, Within(0, 1)] = 0.0
    common: Annotated[float, Within(0, 1)] = 0.3
    noise: Annotated[float, Within(0, 1)] = 0.0
    fewest: Annotated[int, Within(1, _MOST)] = 2
    most: Annotated[int, Within(1, _MOST)] = _MOST
    seed: Annotated[int, Within(0, 2**63 - 1)] = 0

    def __post_init__(self) -> None:
        """Refuse values out of range and what does not go together."""
        Ranged.__post_init__(self)
        if self.fewest > self.most:
            raise SureshotError(
                f"Setting dials.fewest is {self.fewest} and dials.most {self.most}; a video cannot "
                "have more scenes than the most there are."
            )


@dataclass(frozen=True, slots=True)
class MadeVideo:
    """A video of a made world.

    Attributes:
        id: its name, and that of its file.
        scenes: what is shown, in this order.
        pixels: number that its pictures are drawn from.
    """

    id: str
    scenes: tuple[Scene, ...]
    pixels: int


@dataclass(frozen=True, slots=True)
class MadeCaption:
    """A caption of a made world.

    Attributes:
        text: what is read.
        video: number of its video within the split.
        scene: number of the scene it is about; None is the whole video.
        meant: facts that it was to name, of each scene it is about.
        said: facts that its words name; other ones than those meant where a word is wrong.
    """

    text: str
    video: int
    scene: int | None
    meant: tuple[Said, ...]
    said: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class MadePart:
    """One split of a made world.

    Attributes:
        name: ``train``, ``val`` or ``test``.
        dials: what the world is like.
        videos: the videos.
        captions: the captions, those of one video side by side.
    """

    name: str
    dials: MadeDials
    videos: tuple[MadeVideo, ...]
    captions: tuple[MadeCaption, ...]


def make_world(dials: MadeDials) -> tuple[MadePart, ...]:
    """The three splits of a world; no video is in two of them, nor shown twice.

    Args:
        dials: what it is like. Worlds that differ in what captions say alone have the same videos.

    Raises:
        SureshotError: there are not that many videos unlike each other.
    """
    common = _common_scenes(dials.seed)
    seen: set[tuple[tuple[str, ...], ...]] = set()
    parts = []
    for number, name in enumerate(SPLITS):
        draw = np.random.default_rng((dials.seed, 1, number))
        videos = [
            _video(f"{name}-{place:05d}", dials, common, seen, draw)
            for place in range(getattr(dials, name))
        ]
        draw = np.random.default_rng((dials.seed, 2, number))
        captions = [
            _caption(video, place, dials, draw)
            for place, video in enumerate(videos)
            for _ in range(dials.captions)
        ]
        parts.append(
            MadePart(name=name, dials=dials, videos=tuple(videos), captions=tuple(captions))
        )
    return tuple(parts)


def _common_scenes(seed: int) -> list[Scene]:
    draw = np.random.default_rng((seed, 0))
    return [_scene(draw) for _ in range(_COMMON)]


def _scene(draw: np.random.Generator) -> Scene:
    return {fact: str(draw.choice(list(FACTS[fact]))) for fact in _KINDS}


def _video(
    name: str,
    dials: MadeDials,
    common: Sequence[Scene],
    seen: set[tuple[tuple[str, ...], ...]],
    draw: np.random.Generator,
) -> MadeVideo:
    """A video unlike those seen; one of its scenes is its own."""
    for _ in range(_TRIES):
        count = int(draw.integers(dials.fewest, dials.most + 1))
        own = int(draw.integers(count))
        scenes = tuple(
            common[int(draw.integers(len(common)))]
            if place != own and draw.random() < dials.common
            else _scene(draw)
            for place in range(count)
        )
        key = tuple(tuple(scene.values()) for scene in scenes)
        if key not in seen:
            seen.add(key)
            return MadeVideo(id=name, scenes=scenes, pixels=int(draw.integers(2**31)))
    raise SureshotError(
        f"After {len(seen)} videos there is none left unlike all others; ask for fewer."
    )


def _caption(
    video: MadeVideo, number: int, dials: MadeDials, draw: np.random.Generator
) -> MadeCaption:
    whole = draw.random() < dials.whole
    scene = None if whole else int(draw.integers(len(video.scenes)))
    about = video.scenes if scene is None else (video.scenes[scene],)
    meant = tuple(_named(one, dials.ambiguity, draw) for one in about)
    said = list(meant)
    if draw.random() < dials.noise:
        places = [(place, fact) for place, one in enumerate(meant) for fact in one]
        place, fact = places[draw.integers(len(places))]
        others = [value for value in FACTS[fact] if value != meant[place][fact]]
        said[place] = {**meant[place], fact: str(draw.choice(others))}
    return MadeCaption(
        text=sentence(said, draw), video=number, scene=scene, meant=meant, said=tuple(said)
    )


def _named(scene: Scene, ambiguity: float, draw: np.random.Generator) -> Said:
    """The facts that a caption names: one, and each other with the chance 1 - ambiguity."""
    first = draw.integers(len(_KINDS))
    chosen = draw.random(len(_KINDS)) >= ambiguity
    chosen[first] = True
    return {fact: scene[fact] for fact, named in zip(_KINDS, chosen, strict=True) if named}
