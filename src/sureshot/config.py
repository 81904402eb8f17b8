"""Settings an index is built with: frozen values, checked when made, stored with the index."""

import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from sureshot.errors import SureshotError

Decode = Literal["auto", "all", "keyframes"]


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """How videos are cut and sampled. Two windows compare only if these agree, so an index has one.

    Attributes:
        model: name of the encoder, as after ``--model``.
        frames: frames sampled uniformly from each window, 1 to 64.
        window: longest window in seconds, 1 to 30.
        scenes: whether a change of scene ends a window.
        decode: ``all`` frames, ``keyframes`` only, or ``auto``: keyframes for videos over ten
            minutes that have enough of them to lose no sample.
        frame_rate: frames per second that a folder of frames stands for.
    """

    model: str = "bundled"
    frames: int = 12
    window: float = 30.0
    scenes: bool = True
    decode: Decode = "auto"
    frame_rate: float = 1.0

    def __post_init__(self) -> None:
        """Refuse values out of range, naming the setting."""
        _within("frames", self.frames, 1, 64)
        _within("window", self.window, 1.0, 30.0)
        _within("frame_rate", self.frame_rate, 0.001, 1000.0)
        _chosen("decode", self.decode, typing.get_args(Decode))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "IndexSettings":
        """Settings from plain values.

        Raises:
            SureshotError: an unknown name or a value of the wrong type; the message names it.
        """
        known = {field.name: field.type for field in fields(cls)}
        for name in values:
            if name not in known:
                raise SureshotError(f"Unknown setting {name}; known: {', '.join(known)}.")
        typed: dict[str, Any] = {
            name: _typed(name, value, known[name]) for name, value in values.items()
        }
        return cls(**typed)


def _typed(name: str, value: object, kind: object) -> object:
    """The value, a whole number as a float where one is wanted."""
    if kind is float and type(value) is int:
        return float(value)
    if typing.get_origin(kind) is Literal:
        _chosen(name, value, typing.get_args(kind))
        return value
    assert isinstance(kind, type)
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise SureshotError(f"Setting {name} is {value!r}; expected {kind.__name__}.")


def _chosen(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SureshotError(f"Setting {name} is {value!r}; known: {', '.join(choices)}.")


def _within(name: str, value: int | float, low: int | float, high: int | float) -> None:
    if not low <= value <= high:
        raise SureshotError(f"Setting {name} is {value}; it must be between {low} and {high}.")
