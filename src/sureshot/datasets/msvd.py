"""MSVD: 1,970 short clips of the web with about 40 sentences each, every sentence a query.

Files:
    ``{train,val,test}_list.txt``: ids, one a line.
    ``raw-captions.pkl``: id to list of sentences, each a list of words, which are joined with
    spaces; or ``captions_msvd.json``: id to list of sentences.

    A pickle can run any program when it is opened. This one is opened with a reader that builds
    containers, texts and numbers and refuses everything else.

References:
    Chen and Dolan, Collecting Highly Parallel Data for Paraphrase Evaluation, 2011.

Differs:
    Some published loaders draw one sentence a video, or even one word where they take the list of
    words for a list of sentences. Here all sentences count.
"""

import collections
import pickle
from pathlib import Path
from typing import Any

from sureshot.datasets.annotation import expecting, pick, read_annotation, read_lines, sentences
from sureshot.datasets.listing import Listing
from sureshot.errors import SureshotError

PROTOCOLS = ("multi-caption",)
_EXPECTED = {"train": 1200, "val": 100, "test": 670}


def no_validation(protocol: str) -> str:
    """Why a protocol has no validation set; empty if it has one."""
    return ""


def read(root: Path, split: str, protocol: str) -> Listing:
    """The listing of one split.

    Raises:
        SureshotError: a file is missing, not as expected, or not safe to open.
    """
    ids = read_lines(pick(root, f"{split}_list.txt"))
    path = pick(root, "raw-captions.pkl", "captions_msvd.json")
    data = _unpickled(path) if path.suffix == ".pkl" else read_annotation(path)
    with expecting(path, "a list of sentences for each id"):
        captions = {name: _sentences(data.get(name, [])) for name in ids}
    return Listing(protocol, captions, _EXPECTED[split])


def _sentences(value: Any) -> list[str]:
    """Texts, or lists of words joined to texts."""
    if not isinstance(value, list | tuple):
        raise TypeError(f"{value!r:.60} is no list of sentences")
    return sentences([one if isinstance(one, str) else " ".join(one) for one in value])


def _unpickled(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            # Texts that Python 2 wrote are bytes in the file.
            return _Plain(file, encoding="utf-8", errors="replace").load()
    except _RefusedError as error:
        raise SureshotError(
            f"{path} asks for {error}, which no list of sentences needs, so it was not opened. It "
            "may run a program: fetch it anew, or use captions_msvd.json."
        ) from None
    except OSError as error:
        raise SureshotError(f"{path} cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # a damaged pickle can fail in any way
        raise SureshotError(f"{path} is no whole pickle: {error}. Fetch it anew.") from None


class _RefusedError(Exception):
    """The name of something a pickle may not have."""


def _bytes(text: str, coding: str) -> bytes:
    """What Python 3 writes for bytes in the old protocols, with this coding and no other."""
    if coding != "latin1":
        raise _RefusedError(f"the coding {coding}")
    return text.encode(coding)


_PLAIN: dict[tuple[str, str], Any] = {
    ("_codecs", "encode"): _bytes,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("collections", "defaultdict"): collections.defaultdict,
} | {
    (module, kind.__name__): kind
    for module in ("builtins", "__builtin__")
    for kind in (bytearray, bytes, complex, dict, float, frozenset, int, list, set, str, tuple)
}


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _PLAIN:
            raise _RefusedError(f"{module}.{name}")
        return _PLAIN[module, name]
