from .errors import SureshotError as SureshotError
from .library.answer import Answer as Answer
from .library.answer import Hit as Hit
from .library.indexed import Indexed as Indexed
from .library.indexing import index as index
from .library.search import Searcher as Searcher
from .library.search import open_index as open_index
from .models.loading import load as load
from .models.scorer import Embedded as Embedded
from .models.scorer import Scorer as Scorer

__version__: str
