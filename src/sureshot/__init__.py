"""Sureshot finds the moment you describe in your own videos.

Importing this package is cheap: what needs numpy, torch or ffmpeg is imported at its first use.
"""

from typing import TYPE_CHECKING

from sureshot.errors import SureshotError
from sureshot.lazy import lazy

if TYPE_CHECKING:
    from sureshot.library.answer import Answer as Answer
    from sureshot.library.answer import Hit as Hit
    from sureshot.library.indexed import Indexed as Indexed
    from sureshot.library.indexing import index as index
    from sureshot.library.search import Searcher as Searcher
    from sureshot.library.search import open_index as open_index
    from sureshot.models.loading import load as load
    from sureshot.models.scorer import Embedded as Embedded
    from sureshot.models.scorer import Scorer as Scorer

__version__ = "0.1.0"

_HOMES = {
    "Answer": "sureshot.library.answer",
    "Hit": "sureshot.library.answer",
    "Indexed": "sureshot.library.indexed",
    "Searcher": "sureshot.library.search",
    "index": "sureshot.library.indexing",
    "open_index": "sureshot.library.search",
    "load": "sureshot.models.loading",
    "Embedded": "sureshot.models.scorer",
    "Scorer": "sureshot.models.scorer",
}
__all__ = ["SureshotError", "__version__", *_HOMES]
__getattr__, __dir__ = lazy(__name__, _HOMES)
