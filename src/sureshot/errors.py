"""Every error Sureshot raises on purpose. Each message names the thing, the reason and the fix."""


class SureshotError(Exception):
    """Something the user can mend; the message says how."""


class VideoError(SureshotError):
    """One video could not be read. The rest of the folder is not affected.

    Attributes:
        transient: the reason may go away by itself, so the next run tries again.
    """

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class StoreError(SureshotError):
    """The index is missing, damaged, from a newer version, or written by another model."""


class ModelError(SureshotError):
    """A model could not be found, loaded or trusted."""


class QueryError(SureshotError):
    """A query that cannot be searched for."""
