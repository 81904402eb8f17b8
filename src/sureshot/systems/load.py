"""Systems by name, built from plain settings."""

from collections.abc import Mapping
from typing import Any

from sureshot.errors import SureshotError
from sureshot.settings import build
from sureshot.systems.clip2video import Clip2Video, Clip2VideoConfig
from sureshot.systems.ce import Ce, CeConfig
from sureshot.systems.clip4clip import Clip4Clip, Clip4ClipConfig
from sureshot.systems.duq import Duq, DuqConfig
from sureshot.systems.hit import Hit, HitConfig
from sureshot.systems.pcme import Pcme, PcmeConfig
from sureshot.systems.system import System
from sureshot.systems.tmass import TMass, TMassConfig
from sureshot.systems.tokens import Sizes
from sureshot.systems.uatvr import Uatvr, UatvrConfig
from sureshot.systems.xpool import XPool, XPoolConfig

NAMES = ("clip4clip", "xpool", "duq", "uatvr", "clip2video", "pcme", "tmass", "hit", "ce")


def load_system(settings: Mapping[str, Any], sizes: Sizes) -> System:
    """The system of these settings, its weights fresh.

    Args:
        settings: its ``name`` and its own settings, as in the table ``[system]`` of a recipe.
        sizes: of the vectors it reads.

    Raises:
        SureshotError: no such system, or a setting it does not have or cannot take.
    """
    values = dict(settings)
    name = values.pop("name", None)
    match name:
        case "clip4clip":
            return Clip4Clip(build(Clip4ClipConfig, values, "system"), sizes.dim)
        case "xpool":
            return XPool(build(XPoolConfig, values, "system"), sizes.dim)
        case "duq":
            return Duq(build(DuqConfig, values, "system"), sizes.dim)
        case "uatvr":
            return Uatvr(build(UatvrConfig, values, "system"), sizes.dim)
        case "clip2video":
            return Clip2Video(build(Clip2VideoConfig, values, "system"), sizes.dim)
        case "pcme":
            return Pcme(build(PcmeConfig, values, "system"), sizes.dim)
        case "tmass":
            return TMass(build(TMassConfig, values, "system"), sizes.dim)
        case "hit":
            return Hit(build(HitConfig, values, "system"), sizes.dim)
        case "ce":
            return Ce(build(CeConfig, values, "system"), sizes)
        case _:
            raise SureshotError(f"system.name is {name!r}; known: {', '.join(NAMES)}.")
