"""The tables of DUQ."""

from typing import Any

from sureshot.research.reproduction.table import Table, Variant

# Dropout within the pooling is off: with it a step costs ten times as much, and a linear stem has
# its own. The scale starts below CLIP's, whose space is not ours.
_HEAD: dict[str, Any] = {"dropout": 0.0, "scale": 20.0}
FULL: dict[str, Any] = {"name": "duq", **_HEAD}
_OFF: dict[str, Any] = {
    "similarity_evidence": False,
    "distance_loss": False,
    "distance_evidence": False,
}
CONTROL = Variant(
    "control: all weights of DUQ, means for samples, no uncertainty",
    FULL | _OFF | {"distance": "means", "distance_loss": True},
    control=True,
)
_BASELINE = FULL | _OFF


def _components(mode: str) -> tuple[Variant, ...]:
    """The rows of DUQ's table 3 in one mode."""
    rows = {
        "#1 L_S": (False, False, False),
        "#2 L_S+L_S^U": (True, False, False),
        "#3 L_S+L_D": (False, True, False),
        "#4 L_S+L_S^U+L_D": (True, True, False),
        "#5 L_S+L_S^U+L_D^U": (True, False, True),
        "#6 L_S+L_S^U+L_D+L_D^U": (True, True, True),
    }
    return tuple(
        Variant(
            f"{name} ({mode})",
            FULL
            | {
                "mode": mode,
                "similarity_evidence": seen,
                "distance_loss": apart,
                "distance_evidence": doubted,
            },
            printed=name,
        )
        for name, (seen, apart, doubted) in rows.items()
        # Without any of its terms the modes are one system.
        if mode == "well_posed" or seen or apart
    )


def _distances() -> tuple[Variant, ...]:
    """The rows of table 6 of DUQ's supplement: no evidence but in the last ones."""
    plain = FULL | {"similarity_evidence": False, "distance_evidence": False}
    names = {
        "Cosine Distance": "mean",
        "Monte-Carlo": "monte_carlo",
        "MIL": "mil",
        "Unif Loss": "uniformity",
        "KL-divergence": "kl",
        "2-Wasserstein": "wasserstein",
        "UDA": "uda",
    }
    rows = [Variant("Baseline", _BASELINE, "Baseline K=7")]
    for name, distance in names.items():
        rows.append(Variant(f"{name} K=7", plain | {"distance": distance}, f"{name} K=7"))
    rows.append(Variant("UDA with evidence K=7", FULL | {"distance": "uda"}, "UDA+EDL K=7"))
    for samples in (4, 7, 10):
        rows += [
            Variant(
                f"DUQ, rule of the paper, K={samples}",
                FULL | {"distance": "boundary", "samples": samples},
                f"DUQ K={samples}",
            ),
            Variant(f"DUQ, one rule for all pairs, K={samples}", FULL | {"samples": samples}),
        ]
    return (*rows, CONTROL)


_PROTOCOL = "1000 pairs of MSR-VTT 1k-A, CLIP ViT-B/32 trained end to end"

TABLES = (
    Table(
        "duq-3",
        "DUQ, table 3: losses",
        "DUQ-T3",
        (*_components("well_posed"), *_components("paper"), CONTROL),
        _PROTOCOL,
    ),
    Table(
        "duq-s3",
        "DUQ, supplement, table 3: pooling",
        "DUQ-S3",
        tuple(
            Variant(name, FULL | {"pooling": pooling}, f"pooling={name}")
            for name, pooling in {
                "Mean": "mean",
                "MLP": "mlp",
                "SA": "self_attention",
                "CA": "cross_attention",
            }.items()
        ),
        _PROTOCOL,
    ),
    Table(
        "duq-s4",
        "DUQ, supplement, table 4: evidence",
        "DUQ-S4",
        (
            Variant("baseline", _BASELINE, "baseline"),
            *(
                Variant(name, FULL | {"evidence": kind}, f"evidence={name}")
                for name, kind in {
                    "ReLU": "relu",
                    "Softplus": "softplus",
                    "Exponential": "exp",
                }.items()
            ),
            CONTROL,
        ),
        _PROTOCOL,
    ),
    Table(
        "duq-s5",
        "DUQ, supplement, table 5: frames",
        "DUQ-S5",
        tuple(
            # Twelve are all there are: the run of the other tables. The paper begins at 4.
            Variant(f"F={frames}", FULL, printed, frames=frames % 12 or None)
            for frames in (1, 2, 4, 8, 12)
            for printed in (None if frames < 4 else f"F={frames}",)
        ),
        _PROTOCOL,
    ),
    Table("duq-s6", "DUQ, supplement, table 6: distances", "DUQ-S6", _distances(), _PROTOCOL),
    Table(
        "duq-4",
        "DUQ, table 4: trained on one data set, tested on another",
        "DUQ-T4",
        (
            Variant("CLIP4Clip", {"name": "clip4clip", "scale": 20.0}, "", "CLIP4Clip"),
            Variant("X-Pool", {"name": "xpool", **_HEAD}, "", "X-Pool"),
            Variant("DUQ", FULL, "", "DUQ"),
            CONTROL,
        ),
        _PROTOCOL,
        elsewhere=True,
    ),
)
