"""Charades: people acting out a script at home.

Protocols:
    ``script``: the query is the script, one a video, as in ECLIPSE, which later papers compare
    with. ``descriptions``: the query is what viewers wrote about the video, all of them joined;
    an easier task, so its numbers do not compare with the other's.

Files:
    ``Charades_v1_train.csv`` and ``Charades_v1_test.csv`` with the columns ``id``, ``script`` and
    ``descriptions``, the last separated by semicolons. Of a repeated id the first row counts.

    There is no validation set.

References:
    Sigurdsson et al., Hollywood in Homes: Crowdsourcing Data Collection for Activity
    Understanding, 2016.
    Lin et al., ECLIPSE: Efficient Long-range Video Retrieval using Sight and Sound, 2022.

Differs:
    DUQ's released loader reads the descriptions, although the numbers its table compares with were
    made with the script. Here the script is the default, and the title names which one it was.
"""

from pathlib import Path

from sureshot.datasets.annotation import pick, read_table
from sureshot.datasets.split import Listing

PROTOCOLS = dict.fromkeys(("script", "descriptions"), "Charades has no validation set.")
_EXPECTED = {"train": 7985, "test": 1863}


def read(root: Path, split: str, protocol: str) -> Listing:
    """The listing of one split."""
    path = pick(root, f"Charades_v1_{split}.csv")
    captions: dict[str, list[str]] = {}
    for row in read_table(path, "id", protocol):
        parts = [row[protocol]] if protocol == "script" else row[protocol].split(";")
        text = " ".join(part.strip() for part in parts if part.strip())
        captions.setdefault(row["id"], [text])
    return Listing(protocol=protocol, captions=captions, expected=_EXPECTED[split])
