"""What `sureshot evaluate --trust` adds."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sureshot.cli.options import MistypedError
from sureshot.errors import SureshotError

if TYPE_CHECKING:
    import numpy as np

    from sureshot.research.features import SplitFeatures
    from sureshot.research.scorer import Scorer
    from sureshot.trust.card import Calibration
    from sureshot.trust.report import TrustReport


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for.

    Attributes:
        trust: anything at all.
        card: file of a calibration to measure.
        plots: folder for figures.
    """

    trust: bool
    card: Path | None
    plots: Path | None

    def check(self) -> None:
        """Refuse what does not go together before videos are decoded for it.

        Raises:
            MistypedError: a card or plots without ``--trust``.
            SureshotError: matplotlib is not there to draw.
        """
        for name, given in (("--card", self.card), ("--plots", self.plots)):
            if given is not None and not self.trust:
                raise MistypedError(f"{name} is about --trust; add it, or leave {name} out.")
        if self.plots is not None:
            from sureshot.research.figures.canvas import page

            page(1.0)

    def read(self, scorer: "Scorer") -> "Calibration | None":
        """The card, if one was named.

        Raises:
            SureshotError: it cannot be read, or is of another model.
        """
        from sureshot.trust.card import Calibration

        if self.card is None:
            return None
        try:
            card = Calibration.from_json(self.card.expanduser().read_text("utf-8"))
        except UnicodeDecodeError:
            raise SureshotError(f"{self.card} is no calibration card.") from None
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise SureshotError(f"The card {self.card} cannot be read: {reason}.") from None
        odd = card.mismatches(
            scorer.fingerprint, None if scorer.bank is None else scorer.bank.digest
        )
        if odd:
            raise SureshotError(f"{self.card} is not about {scorer.name}. {odd[0]}")
        return card

    def measured(
        self,
        scorer: "Scorer",
        features: "SplitFeatures",
        raw: "np.ndarray[Any, Any]",
        card: "Calibration | None",
    ) -> "TrustReport":
        """How far the scores that a search would rank by can be believed."""
        from sureshot.trust.measure import measure

        bank = scorer.bank
        return measure(
            scorer.ranking(features, raw=raw),
            features.split.owner(),
            elsewhere=scorer.elsewhere(features),
            correction="" if bank is None else bank.title,
            title=features.split.title(),
            card=card,
            papers=scorer.measures(features),
            scale=scorer.scale,
        )

    def drawn(self, report: "TrustReport") -> list[str]:
        """The figures written, by their absolute paths."""
        from sureshot.research.figures.reliance import write

        if self.plots is None:
            return []
        return [str(path) for path in write(report, self.plots.expanduser().absolute())]


def values(report: "TrustReport", files: list[str]) -> Mapping[str, Any]:
    """What ``--json`` prints of it."""
    return {**report.to_dict(), "files": files}
