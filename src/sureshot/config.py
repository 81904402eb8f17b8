"""Settings an index is built with: frozen values, checked when made, stored with the index."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from sureshot.settings import build, within

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
        within("frames", self.frames, 1, 64)
        within("window", self.window, 1.0, 30.0)
        within("frame_rate", self.frame_rate, 0.001, 1000.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "IndexSettings":
        """Settings from plain values.

        Raises:
            SureshotError: an unknown name or a value of the wrong type; the message names it.
        """
        return build(cls, values)
