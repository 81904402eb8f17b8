"""All tables that can be run again, by name."""

from sureshot.errors import SureshotError
from sureshot.research.reproduction import duq, dvtr, systems, uatvr
from sureshot.research.reproduction.table import Table

TABLES: dict[str, Table] = {
    one.name: one for one in (*duq.TABLES, *uatvr.TABLES, *dvtr.TABLES, systems.TABLE)
}


def table(name: str) -> Table:
    """The table of this name.

    Raises:
        SureshotError: there is none.
    """
    if name not in TABLES:
        raise SureshotError(f"Unknown table {name!r}; known: {', '.join(TABLES)}.")
    return TABLES[name]
