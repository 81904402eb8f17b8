"""All systems side by side, and their controls: a table of our own."""

from typing import Any

from sureshot.research.reproduction import duq, uatvr
from sureshot.research.reproduction.dvtr import CLIP2VIDEO, CLIP4CLIP, HIT, on
from sureshot.research.reproduction.table import Table, Variant

_XPOOL: dict[str, Any] = {"name": "xpool", "dropout": 0.0, "scale": 20.0}
_CE: dict[str, Any] = {"name": "ce", "width": 128}
_PCME: dict[str, Any] = {"name": "pcme"}
_BANKS: dict[str, Any] = {**HIT, "bank": 1024, "momentum": 0.9}
_SEQUENTIAL: dict[str, Any] = {**CLIP4CLIP, "temporal": "transformer", "layers": 1}
_BASES = {"CLIP4Clip": CLIP4CLIP, "X-Pool": _XPOOL, "CLIP2Video": CLIP2VIDEO, "HiT": HIT, "CE": _CE}
SIZES = (192, 256, 384, 512)  # widths of the stem of CLIP4Clip, to compare larger systems with

TABLE = Table(
    "systems",
    "All systems",
    "",
    (
        *(Variant(name, base) for name, base in _BASES.items()),
        Variant("CLIP4Clip, sequential transformer", _SEQUENTIAL),
        Variant("HiT with memory banks", _BANKS),
        Variant("PCME", _PCME),
        Variant("T-MASS", {"name": "tmass", "dropout": 0.0, "scale": 20.0}),
        Variant("DUQ", duq.FULL),
        Variant("UATVR", uatvr.FULL),
        *(Variant(f"DVTR + {name}", on(base)) for name, base in _BASES.items()),
        Variant("DUQ without uncertainty", duq.CONTROL.system),
        Variant("UATVR without uncertainty", uatvr.CONTROL.system),
        Variant("DVTR + CE without uncertainty", on(_CE, uncertainty="none")),
        Variant("UATVR, four layers", uatvr.FULL | {"layers": 4}),
        *(Variant(f"CLIP4Clip, stem of width {width}", CLIP4CLIP, width=width) for width in SIZES),
    ),
    elsewhere=True,
)
