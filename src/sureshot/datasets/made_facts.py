"""What can be seen in a made video, and how a caption says it.

A video is a row of *scenes*. A scene shows one moving shape, of which there are five facts: its
colour, shape, size, place and direction. A caption names some of these facts, by one of several
words for each and in one of several orders of words.
"""

from collections.abc import Mapping, Sequence

import numpy as np

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
    """A caption that says these facts.

    Args:
        parts: facts named of each scene that the caption is about, at least one; scenes in their
            order, each with at least one fact.
        draw: picks words and their order.

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
