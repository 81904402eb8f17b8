"""A row and a table with what is left out."""

from sureshot.research.reproduction.table import Table, Variant


def test_a_row_has_no_printed_partner_unless_it_is_named():
    row = Variant("row", {"name": "duq"})
    assert (row.printed, row.frames, row.width, row.control, row.paper) == (
        None,
        None,
        None,
        False,
        "",
    )
    table = Table("t", "A table", "", (row,))
    assert (table.protocol, table.elsewhere) == ("", False)
