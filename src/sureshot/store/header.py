"""The header of an index: by which model and with which settings it was written."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Literal

from sureshot.errors import StoreError, SureshotError, option
from sureshot.formats import parse_json
from sureshot.settings import Ranged, Within, build, to_values

Decode = Literal["auto", "all", "keyframes"]


@dataclass(frozen=True, slots=True)
class IndexSettings(Ranged):
    """How videos are cut and sampled. Two windows compare only if these agree, so an index has one.

    Attributes:
        model: name of the encoder, as `sureshot.models.loading.load_searchable` takes it.
        frames: frames sampled uniformly from each window, 1 to 64.
        window: longest window in seconds, 1 to 30.
        scenes: whether a change of scene ends a window.
        decode: ``all`` frames, ``keyframes`` only, or ``auto``: keyframes for videos over ten
            minutes that have enough of them to lose no sample.
        frame_rate: frames per second that a folder of frames stands for.
        look: seconds of which ``frames`` are looked at for where a scene fades into another, 1 to
            30; 0 finds cuts only, as all indexes of format 1 do.
    """

    model: str = "bundled"
    frames: Annotated[int, Within(1, 64)] = 12
    window: Annotated[float, Within(1.0, 30.0)] = 30.0
    scenes: bool = True
    decode: Decode = "auto"
    frame_rate: Annotated[float, Within(0.001, 1000.0)] = 1.0
    look: Annotated[float, Within(0.0, 30.0)] = 10.0


# 1 had windows by cuts and length alone; 1 and 2 no checksums, and cells of frames none read; 1 to
# 3 vectors without what the hub correction takes off; 1 to 4 a column for each value of a window. 1
# and 2 are brought to 3; 3 and 4 stay what they are.
SCHEMA_VERSION = 5
CHECKED = 3  # formats from this one on can be written to
PACKED = 5  # formats from this one on have all that a search reads of a window in one value
_EIGHT = 8  # a vector index takes widths that are multiples of this
KEY = b"sureshot"


@dataclass(frozen=True, slots=True)
class Header:
    """What must agree between an index and whoever reads or extends it.

    Attributes:
        settings: how its videos were cut and sampled.
        fingerprint: digest that identifies the encoder that wrote it.
        dim: size of its vectors.
        schema: number of the format that it is in.
        made: name drawn when it was made, so that another one in its place has another; empty in
            one of an older Sureshot.
    """

    settings: IndexSettings
    fingerprint: str
    dim: int
    schema: int = SCHEMA_VERSION
    made: str = ""

    @property
    def width(self) -> int:
        """How many numbers a stored vector has: more than `dim`, see `sureshot.store.hubs`."""
        return self.dim if self.schema <= CHECKED else (self.dim // _EIGHT + 1) * _EIGHT

    def to_metadata(self) -> dict[bytes, bytes]:
        """As metadata of an Arrow schema."""
        return {KEY: json.dumps(to_values(self)).encode()}

    def check_model(self, location: str, model: str, fingerprint: str) -> None:
        """Refuse an encoder other than the one that wrote the index at a place.

        Raises:
            StoreError: the vectors would not compare; the message says what to do.
        """
        if fingerprint == self.fingerprint:
            return
        theirs = self.settings.model
        if model == theirs:
            what, fix = f"another version of the model {theirs!r} than the one here", "Index"
        else:
            what, fix = (
                f"the model {theirs!r}, not by {model!r}",
                f"Use {option('model', theirs)}, or index",
            )
        raise StoreError(
            f"The index at {location} was written by {what}, and vectors of different models "
            f"do not compare. {fix} again, into another place ({option('db')}) or after "
            f"`sureshot reset`."
        )

    def check_settings(self, location: str, settings: IndexSettings) -> None:
        """Refuse settings other than those of the index at a place.

        Raises:
            StoreError: they differ; the message says in what.
        """
        # The same model may have moved to another folder; all else must agree.
        settings = replace(settings, model=self.settings.model)
        if self.settings != settings:
            theirs, ours = to_values(self.settings), to_values(settings)
            differ = ", ".join(f"{k} = {v!r}" for k, v in theirs.items() if v != ours[k])
            raise StoreError(
                f"The index at {location} was built with other settings ({differ}). Index "
                f"with the same ones, or choose another place with {option('db')}, or run "
                f"`sureshot reset`."
            )

    @classmethod
    def from_metadata(cls, metadata: Mapping[bytes, bytes] | None, location: str) -> "Header":
        """The header that `to_metadata` wrote.

        Raises:
            StoreError: somebody else wrote this, a newer Sureshot did, or it is damaged.
        """
        if not ours(metadata):
            raise StoreError(
                f"What lies at {location} is not an index of Sureshot. Choose another place with "
                f"{option('db')}."
            )
        assert metadata is not None
        damaged = StoreError(
            f"The header of the index at {location} is damaged. `sureshot reset` removes the "
            f"index; then index your folder again."
        )
        try:
            values = parse_json(metadata[KEY])
        except ValueError:
            raise damaged from None
        if not isinstance(values, dict) or type(values.get("schema")) is not int:
            raise damaged
        # Before anything else is looked at: a newer format may mean something else by it.
        if values["schema"] > SCHEMA_VERSION:
            raise StoreError(
                f"The index at {location} was written by a newer Sureshot (format "
                f"{values['schema']}, this one reads up to {SCHEMA_VERSION}). "
                f"Upgrade with: pip install --upgrade sureshot"
            )
        known = {field.name for field in fields(cls)}
        settings = values.get("settings")
        if values["schema"] == 1 and isinstance(settings, dict):
            values["settings"] = {**settings, "look": 0.0}
        try:
            return build(cls, {name: value for name, value in values.items() if name in known})
        except SureshotError:
            raise damaged from None


def ours(metadata: Mapping[bytes, bytes] | None) -> bool:
    """Whether a table with this metadata belongs to an index of Sureshot, sound or not."""
    return KEY in (metadata or {})
