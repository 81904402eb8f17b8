from . import library as library
from . import research as research
from .errors import SureshotError as SureshotError
from .library.index_result import Indexed as Indexed
from .library.indexing import index as index
from .library.results import Answer as Answer
from .library.results import Hit as Hit
from .library.search import Searcher as Searcher
from .library.search import open_index as open_index
from .models.load import Embedded as Embedded
from .models.load import Scorer as Scorer
from .models.load import load as load

__version__: str
