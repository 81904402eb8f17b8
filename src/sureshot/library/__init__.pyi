from .answer import Answer as Answer
from .answer import Hit as Hit
from .indexed import Indexed as Indexed
from .indexing import index as index
from .search import Searcher as Searcher
from .search import open_index as open_index
