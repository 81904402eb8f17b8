"""Every system in every form that a recipe may ask for, and tokens to try them on.

All tests that are about systems as such hold for each. A new system is here by itself, with its
defaults; other settings of it are lines of `FORMS`.
"""

import math
from typing import Any, get_args

import pytest
import torch

from sureshot.models.systems.base import (
    Codes,
    Sizes,
    System,
    TextTokens,
    VideoTokens,
    known_systems,
    load_system,
)
from sureshot.models.systems.duq import Distance
from sureshot.models.systems.xpool import Pooling

WIDTH, CHANNELS, WORDS, FRAMES = 16, 3, 5, 4
EXPERTS = (("audio", 5), ("motion", 7))
SIZES = Sizes(WIDTH, CHANNELS, EXPERTS)
_MODES = ("well_posed", "paper")
_PARTS = ("similarity_evidence", "distance_loss", "distance_evidence")


def _duq(mode: str, **settings: Any) -> tuple[str, dict[str, Any]]:
    name = " ".join(f"{key}={value}" for key, value in settings.items())
    return f"duq {mode} {name}", {"name": "duq", "mode": mode, **settings}


_C2V = {"name": "clip2video", "layers": 1, "heads": 2}
_HIT = {"name": "hit", "layers": 2, "heads": 2}
_UATVR = {"name": "uatvr", "layers": 1, "heads": 2}

_DVTR = {
    f"dvtr {name}".strip(): {"name": "dvtr", **settings}
    for name, settings in {
        "": {},
        "paper": {"mode": "paper"},
        "paper kl triplet": {"mode": "paper", "divergence": "kl", "loss": "triplet"},
        "triplet": {"loss": "triplet", "negatives": "hardest"},
        "kl": {"divergence": "kl", "temperature": 0.07},
        "pcme": {"uncertainty": "pcme"},
        "pcme paper": {"uncertainty": "pcme", "mode": "paper"},
        "shuffled": {"uncertainty": "shuffled"},
        "none": {"uncertainty": "none"},
        "on xpool": {"base": {"name": "xpool", "dropout": 0.0}},
        "on clip2video": {"base": {"name": "clip2video", "layers": 1, "heads": 2}},
        "on hit": {"base": {"name": "hit", "layers": 1, "heads": 2, "bank": 8}},
        "on ce": {"base": {"name": "ce"}},
        "on duq": {"base": {"name": "duq", "dropout": 0.0}},
        "on uatvr": {"base": _UATVR},
    }.items()
}

# Every system there is with its defaults, and others by hand.
FORMS: dict[str, dict[str, Any]] = {
    **{name: {"name": name} for name in known_systems()},
    "clip4clip transformer": {"name": "clip4clip", "temporal": "transformer", "layers": 1},
    **dict(_duq(mode, distance=how) for mode in _MODES for how in get_args(Distance)),
    **dict(_duq(mode, evidence=how) for mode in _MODES for how in ("softplus", "exp")),
    **dict(_duq(mode, aggregation="pie") for mode in _MODES),
    **dict(
        _duq("well_posed", pooling=how) for how in get_args(Pooling) if how != "cross_attention"
    ),
    "duq paper without text": {"name": "duq", "mode": "paper", "pooling": "mean"},
    **dict(
        _duq("well_posed", **dict.fromkeys(off, False))
        for off in (_PARTS[:1], _PARTS[1:2], _PARTS[2:], _PARTS[1:], _PARTS)
    ),
    "duq_released": {"name": "duq_released", "layers": 1, "heads": 2, "samples": 3},
    "emcl": {"name": "emcl", "layers": 1, "heads": 2, "subspaces": 4},
    "emcl released": {"name": "emcl", "mode": "released", "temporal": "mean", "subspaces": 4},
    "duq control": {"name": "duq", "distance": "means", "distance_evidence": False},
    "uatvr": _UATVR,
    "uatvr paper": {**_UATVR, "mode": "paper"},
    "uatvr as released": {**_UATVR, "mode": "released"},
    "uatvr as printed": {**_UATVR, "mode": "paper", "interaction": "mean"},
    "uatvr baseline": {**_UATVR, "adaptation": False, "matching": "none", "layers": 2},
    "uatvr weighted soft": {
        **_UATVR,
        "interaction": "weighted",
        "matching": "soft_contrastive",
        "include_special": False,
        "divergence": False,
    },
    "uatvr control": {**_UATVR, "matching": "means"},
    "uatvr paper soft": {**_UATVR, "mode": "paper", "matching": "soft_contrastive"},
    "hit": {**_HIT, "bank": 8},
    "hit without a bank": {**_HIT, "bank": 0, "layers": 1},
    "clip2video": _C2V,
    "clip2video without differences": {**_C2V, "difference": False},
    "clip2video without alignment": {**_C2V, "alignment": False},
    "clip2video with neither": {**_C2V, "difference": False, "alignment": False},
    "pcme paper": {"name": "pcme", "mode": "paper", "score": "means"},
    "pcme apart": {"name": "pcme", "uniformity": 10.0},
    "pcme as released": {"name": "pcme", "mode": "paper", "score": "probability", "doubled": True},
    "pcme balanced": {"name": "pcme", "weighing": "balanced", "score": "probability", "beta": 0.0},
    "tmass paper": {"name": "tmass", "mode": "paper", "trials": 3},
    "tmass as released": {"name": "tmass", "mode": "released", "trials": 3},
    "tmass tried": {"name": "tmass", "trials": 3, "choice": "best", "frames": 3},
    "ce of two by netvlad": {
        "name": "ce",
        "experts": ["frames", "motion"],
        "aggregation": "netvlad",
        "clusters": 3,
        "width": 8,
    },
    "hit on experts": {
        "name": "hit",
        "experts": ["motion", "audio"],
        "layers": 2,
        "heads": 2,
        "bank": 0,
    },
    "pcme on experts": {"name": "pcme", "experts": ["audio", "motion"]},
    "ce without its parts": {"name": "ce", "gating": False, "weighting": False},
    "ce as printed": {"name": "ce", "gate": "printed"},
    "ce of frames": {"name": "ce", "experts": ["frames"]},
    **_DVTR,
}


# One form for each way through the code; the others are tried by ``-m slow`` and `make shapes`.
CORE = {
    *known_systems(),
    "clip4clip transformer",
    *("duq paper distance=boundary", "duq paper without text", "duq control"),
    *("duq well_posed aggregation=pie", "duq well_posed pooling=mlp"),
    *("uatvr paper", "uatvr as released", "uatvr baseline", "uatvr weighted soft"),
    *(
        "hit without a bank",
        "hit on experts",
        "pcme on experts",
        "clip2video with neither",
        "pcme as released",
        "pcme balanced",
    ),
    *("tmass paper", "tmass tried", "ce of two by netvlad", "ce without its parts"),
    *("dvtr paper kl triplet", "dvtr triplet", "dvtr pcme", "dvtr on clip2video", "dvtr on hit"),
}
every = pytest.mark.parametrize(
    "form",
    [form if form in CORE else pytest.param(form, marks=pytest.mark.slow) for form in FORMS],
)
every_form = pytest.mark.parametrize("form", FORMS)


def system(form: str, seed: int = 0, sizes: Sizes = SIZES, **settings: Any) -> System:
    """The system of a form, its weights fresh, as for training but without dropout."""
    chosen = {**FORMS[form], **settings}
    if chosen["name"] in ("duq", "xpool", "tmass"):
        chosen.setdefault("dropout", 0.0)
    else:
        chosen.pop("dropout", None)
    torch.manual_seed(seed)
    return load_system(chosen, sizes)


def shaken(form: str, **settings: Any) -> System:
    """The same, ready for evaluation, its weights moved away from where they start."""
    made = system(form, **settings)
    draw = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if weight.requires_grad and name != "log_scale":
                weight += 0.1 * torch.randn(weight.shape, generator=draw)
    return made.eval()


def texts(count: int, seed: int = 0) -> TextTokens:
    """Random texts of one to five words; noise stands at padding, and none of it may count."""
    draw = torch.Generator().manual_seed(seed)
    return TextTokens(
        torch.randn(count, WIDTH, generator=draw),
        torch.randn(count, WORDS, WIDTH, generator=draw),
        _mask(count, WORDS, draw),
    )


def videos(count: int, seed: int = 1) -> VideoTokens:
    """Random videos of one to four frames, independent of any text; of two experts some lack one.

    Every other video lacks the first expert, every third the second; each has two rows otherwise.
    """
    draw = torch.Generator().manual_seed(seed)
    which = torch.zeros(count, 4, 2, dtype=torch.bool)
    which[1::2, :2, 0] = True
    which[torch.arange(count) % 3 > 0, 2:, 1] = True
    return VideoTokens(
        torch.randn(count, FRAMES, WIDTH, generator=draw),
        torch.randn(count, FRAMES, 2, WIDTH, generator=draw),
        torch.randn(count, FRAMES, CHANNELS, generator=draw),
        _mask(count, FRAMES, draw),
        torch.randn(count, 4, 7, generator=draw),
        which,
    )


def told(count: int, seed: int = 0) -> tuple[TextTokens, VideoTokens]:
    """Pairs that belong together, but whose videos are turned away: only training can match them.

    Every text and video holds its topic; the frames see it turned into other directions.
    """
    draw = torch.Generator().manual_seed(seed)
    topics = torch.randn(count, WIDTH, generator=draw)
    turned = topics @ torch.linalg.qr(torch.randn(WIDTH, WIDTH, generator=draw)).Q
    words, film = texts(count, seed + 1), videos(count, seed + 2)
    return (
        TextTokens(topics, topics[:, None] + 0.1 * words.words, words.mask),
        film._replace(frames=turned[:, None] + 0.1 * film.frames),
    )


def gaussians(count: int, seed: int = 0, log_var: float | None = None) -> Codes:
    """Random codes of one Gaussian an item: unit means, spreads about as wide as the prior."""
    draw = torch.Generator().manual_seed(seed)
    mean = torch.nn.functional.normalize(torch.randn(count, WIDTH, generator=draw), dim=-1)
    spread = -math.log(WIDTH) + 0.3 * torch.randn(count, WIDTH, generator=draw)
    return {"mean": mean, "log_var": spread if log_var is None else spread * 0 + log_var}


def _mask(count: int, longest: int, draw: torch.Generator) -> torch.Tensor:
    lengths = torch.randint(1, longest + 1, (count, 1), generator=draw)
    return torch.arange(longest) < lengths
