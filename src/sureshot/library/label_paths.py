"""Videos of an index by the names that a file of labels gives them."""

import difflib
import itertools
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from sureshot.errors import SureshotError, option
from sureshot.library.labels import Label
from sureshot.objects.path import object_path
from sureshot.places import beside
from sureshot.text import counted, plain

_SHOWN = 5  # unknown videos that are named
_FILE, _GIVEN = "judged.jsonl", "labelled.jsonl"


def labels_of_index(location: str) -> Path:
    """File of what was judged of an index, in its folder, where no other model or reset takes it.

    Args:
        location: place of the index.

    Raises:
        SureshotError: the index is in a storage other than S3.
    """
    place = beside(location)
    if place is None:
        raise SureshotError(
            f"The index {location} is in a storage where no judgements can lie. Name a file "
            "for them."
        )
    return place / _FILE


def given_labels_of_index(location: str) -> Path:
    """File of the labels from elsewhere that the card of an index was learned from, beside it.

    Args:
        location: place of the index.

    Raises:
        SureshotError: the index is in object storage.
    """
    return labels_of_index(location).with_name(_GIVEN)


def located(
    labels: Iterable[Label], file: str | Path, videos: Sequence[Path], *, lenient: bool = False
) -> tuple[list[Label], int]:
    """The same queries with the paths of the index in the place of the names of their videos.

    Args:
        labels: the queries that `read_labels` gives.
        file: place of the file they are from; names may start from its folder.
        videos: absolute paths of those in the index.
        lenient: leave out queries with a right video that is not in the index.

    Returns:
        The labels, and how many queries were left out.

    Raises:
        SureshotError: right videos are not in the index, or a name fits several.
    """
    # Not Path.resolve: the index keeps links as they are.
    names = _Names(Path(os.path.abspath(file)).parent, videos)  # noqa: PTH100
    kept: list[Label] = []
    unknown: Counter[Path] = Counter()
    left_out = 0
    for label in labels:
        relevant = [names.find(name) for name in label.relevant]
        missing = [n for n, path in zip(label.relevant, relevant, strict=True) if path is None]
        if missing:
            unknown.update(missing)
            left_out += 1
            continue
        right = tuple(dict.fromkeys(path for path in relevant if path is not None))
        judged = None
        if label.judged is not None:
            # What is gone since was not right, and takes part in no search.
            looked_at = [names.find(name) for name in label.judged]
            judged = tuple(dict.fromkeys(path for path in looked_at if path is not None))
        there = ((moment, names.find(moment.video)) for moment in label.moments)
        moments = tuple(replace(m, video=path) for m, path in there if path is not None)
        kept.append(replace(label, relevant=right, judged=judged, moments=moments))
    if unknown and not lenient:
        raise SureshotError(_unknown(file, list(unknown), names))
    if not kept:
        raise SureshotError(
            f"Every query of {plain(file)} names a video that is not in the index; are they about "
            f"another one? Name it with {option('db')}."
        )
    return kept, left_out


class _Names:
    """The videos of an index by every name that a file of labels may give them."""

    def __init__(self, folder: Path, videos: Sequence[Path]) -> None:
        self._folder = folder
        self._whole = {os.fspath(path): path for path in videos}
        self._ends: defaultdict[str, list[Path]] = defaultdict(list)
        for path in videos:
            self._ends[path.name].append(path)
            if path.stem != path.name:
                self._ends[path.stem].append(path)

    def find(self, name: Path) -> Path | None:
        """The video of a name; None if there is none.

        Raises:
            SureshotError: there are several.
        """
        if (there := object_path(name)) is not None:
            return self._whole.get(str(there))
        written = os.path.expanduser(name)  # noqa: PTH111
        path = os.path.normpath(os.path.join(self._folder, written))  # noqa: PTH118
        if path in self._whole:
            return self._whole[path]
        if os.path.isabs(written):  # noqa: PTH117
            return None
        parts = Path(os.path.normpath(written)).parts or (".",)
        ends = [p for p in self._ends.get(parts[-1], ()) if p.parts[-len(parts) : -1] == parts[:-1]]
        if len(ends) > 1:
            shown = ", ".join(plain(path) for path in ends[:3])
            raise SureshotError(
                f"{plain(name)} may be any of {len(ends)} videos of the index ({shown}); write "
                f"more of its path."
            )
        return ends[0] if ends else None

    def near(self, name: Path) -> Path | None:
        """The video whose name looks most like another."""
        for wanted in (name.name, name.stem):
            close = difflib.get_close_matches(wanted, self._ends, n=9, cutoff=0.6)
            if close:
                # Of those that are as like, the one that begins alike.
                return self._ends[max(close, key=partial(_likeness, wanted))][0]
        return None


def _likeness(wanted: str, name: str) -> tuple[float, int]:
    ratio = difflib.SequenceMatcher(a=name, b=wanted).ratio()
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(wanted, name, strict=False))
    return ratio, len(list(same))


def _unknown(file: str | Path, names: Sequence[Path], known: _Names) -> str:
    """What to say of videos that are not in the index."""
    shown = [plain(name) for name in names[:_SHOWN]]
    hints = [known.near(name) for name in names[:_SHOWN]]
    listed = "; ".join(
        name if hint is None else f"{name} (did you mean {plain(hint)}?)"
        for name, hint in zip(shown, hints, strict=True)
    )
    more = f"; and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    verb = "is" if len(names) == 1 else "are"
    return (
        f"{plain(file)} names {counted(len(names), 'video')} that {verb} not in the index: "
        f"{listed}{more}. Index what is missing, mend the names, or leave these queries out with "
        f"{option('lenient', True)}."
    )
