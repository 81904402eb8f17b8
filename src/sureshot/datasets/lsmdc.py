"""LSMDC: clips of films with the sentence of the description for the blind.

Protocols:
    ``all``: a clip that the annotation repeats keeps all its sentences. ``last``: it keeps the last
    one, as X-Pool and its followers read it. The test set has no repeats.

Files:
    ``LSMDC16_annos_training.csv``, ``LSMDC16_annos_val.csv`` and
    ``LSMDC16_challenge_1000_publictect.csv``: no header, six fields separated by tabs: id of the
    clip, start and end as aligned, start and end as cut, sentence. Quotation marks are part of the
    sentence, except where one stands before the id: there they wrap the line.

    Clips lie in a folder per film or all in one. Lists of broken clips differ between papers (one
    in X-Pool, six in DUQ's code); none is left out here, and one that is not there is counted.

References:
    Rohrbach et al., Movie Description, 2017.
"""

from pathlib import Path

from sureshot.datasets.annotation import pick, read_lines
from sureshot.datasets.split import Listing
from sureshot.errors import SureshotError

PROTOCOLS = {"all": "", "last": ""}
_FILES = {
    "train": ("LSMDC16_annos_training.csv", 101079),
    "val": ("LSMDC16_annos_val.csv", 7408),
    "test": ("LSMDC16_challenge_1000_publictect.csv", 1000),
}
_TITLES = {"all": "all sentences", "last": "last sentence"}
_FIELDS = 6


def read(root: Path, split: str, protocol: str) -> Listing:
    """The listing of one split."""
    name, expected = _FILES[split]
    path = pick(root, name)
    captions: dict[str, list[str]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        if line.startswith('"'):
            line = line.removeprefix('"').removesuffix('"').replace('""', '"')
        fields = line.split("\t", _FIELDS - 1)
        if len(fields) == _FIELDS - 1:
            fields.append("")  # the sentence is empty and its tab was taken for space at the end
        if len(fields) != _FIELDS:
            raise SureshotError(
                f"{path}, annotation {number} has {len(fields)} fields separated by tabs; "
                f"{_FIELDS} are expected, the last the sentence."
            )
        captions.setdefault(fields[0], []).append(fields[-1])
    repeated = sum(map(len, captions.values())) - len(captions)  # published are the annotations
    if protocol == "last":
        captions = {clip: sentences[-1:] for clip, sentences in captions.items()}
    return Listing(protocol=_TITLES[protocol], captions=captions, expected=expected - repeated)
