"""Encoded videos and captions on disk, each under a key of its own, many to a file.

The folder of a cache holds shards. A shard is written whole, never changed, and says in its header
which keys it has, so there is no index beside it to fall out of step, a run that is killed loses
the shard that it was about to write, and several runs can fill one folder. Any subset is read by
opening every shard and taking the rows of the keys that are wanted. Of 10,000 videos all were read
seven times as fast as with one file a video (``python -m benchmarks.feature_cache``).
"""

import contextlib
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Shaped
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from sureshot.errors import SureshotError
from sureshot.files import replace_file
from sureshot.formats import parse_json

# The arrays of one key by name, each with its rows first; or why there are none and never will be.
Entry = Mapping[str, Shaped[np.ndarray, "..."]] | str

_PREFIX, _SUFFIX = "shard-", ".safetensors"
_HEADER = "entries"  # in the metadata: {key: rows of each array, or the reason}, in their order
_BROKEN = (OSError, SafetensorError, ValueError, KeyError, TypeError, AttributeError)
_DENSE = 4  # a shard is read whole if at least one key in so many is wanted


class FeatureCache:
    """A folder of shards.

    Args:
        folder: place of the shards; made when the first is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, keys: Collection[str]) -> dict[str, Entry]:
        """The entries of those keys that some shard has; a shard that is damaged has none."""
        wanted = set(keys)
        entries: dict[str, Entry] = {}
        for path in sorted(self.folder.glob(f"{_PREFIX}*{_SUFFIX}")):
            if not wanted:
                break
            with contextlib.suppress(*_BROKEN):
                entries.update(_read_shard(path, wanted))
                wanted -= entries.keys()
        return entries

    def write(self, entries: Mapping[str, Entry]) -> None:
        """Add a shard with these entries, whole or not at all.

        Args:
            entries: arrays of the same names and row shapes under all keys that have any.

        Raises:
            SureshotError: it cannot be written; a full disk is the user's to know of.
        """
        arrays = [entry for entry in entries.values() if not isinstance(entry, str)]
        names = list(arrays[0]) if arrays else []
        joined = {name: np.concatenate([entry[name] for entry in arrays]) for name in names}
        header = {
            key: entry if isinstance(entry, str) else [len(entry[name]) for name in names]
            for key, entry in entries.items()
        }
        digest = hashlib.sha256("\n".join(sorted(entries)).encode()).hexdigest()[:32]
        metadata = {_HEADER: json.dumps({"arrays": names, "rows": header})}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replace_file(self.folder / f"{_PREFIX}{digest}{_SUFFIX}") as fresh:
                save_file(joined, fresh, metadata)
        except (OSError, SafetensorError) as error:
            raise SureshotError(
                f"The features cannot be kept in {self.folder}: {error}. Free some space, or name "
                f"another folder."
            ) from None


def _read_shard(path: Path, wanted: Collection[str]) -> Iterator[tuple[str, Entry]]:
    """The entries of a shard that are wanted."""
    with safe_open(path, framework="numpy") as file:
        header = parse_json(file.metadata()[_HEADER])
        names, rows = header["arrays"], header["rows"]
        here = wanted & rows.keys()
        dense = len(here) * _DENSE >= len(rows)
        arrays = {
            name: file.get_tensor(name) if dense else file.get_slice(name) for name in names if here
        }
        begin = dict.fromkeys(names, 0)
        for key, counts in rows.items():
            if isinstance(counts, str):
                if key in wanted:
                    yield key, counts
                continue
            ends = {name: begin[name] + count for name, count in zip(names, counts, strict=True)}
            if key in wanted:
                yield key, {name: arrays[name][begin[name] : ends[name]] for name in names}
            begin = ends
