"""What is trained and searched: a stem and the system behind it."""

from torch import nn

from sureshot.systems.stem import Stem
from sureshot.systems.system import Codes, System
from sureshot.systems.tokens import TextTokens, VideoTokens


class Model(nn.Module):
    """An encoder's features in, codes out.

    Args:
        stem: from the encoder's space into that of the system.
        system: built for vectors of the stem's width.
    """

    def __init__(self, stem: Stem, system: System) -> None:
        super().__init__()
        self.stem = stem
        self.system = system

    def texts(self, tokens: TextTokens) -> Codes:
        """Codes of texts."""
        return self.system.texts(self.stem.texts(tokens))

    def videos(self, tokens: VideoTokens) -> Codes:
        """Codes of videos."""
        return self.system.videos(self.stem.videos(tokens))
