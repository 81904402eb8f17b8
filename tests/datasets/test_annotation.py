"""Files of annotation: what is read, and what is said where one is not as it should be."""

import pytest

from sureshot.datasets.annotation import (
    expecting,
    pick,
    read_annotation,
    read_json_lines,
    read_lines,
    read_rows,
    read_table,
    sentences,
)
from sureshot.errors import SureshotError
from tests.datasets.files import put


def test_the_first_file_there_is_picked(tmp_path):
    put(tmp_path / "b.csv")
    assert pick(tmp_path, "a.csv", "b.csv") == tmp_path / "b.csv"
    put(tmp_path / "a.csv")
    assert pick(tmp_path, "a.csv", "b.csv") == tmp_path / "a.csv"


def test_a_missing_file_is_named_with_its_folder(tmp_path):
    with pytest.raises(
        SureshotError, match=rf"{tmp_path} has no a\.csv or b\.csv; give the folder"
    ):
        pick(tmp_path, "a.csv", "b.csv")


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(SureshotError, match=r"nowhere is not a folder"):
        pick(tmp_path / "nowhere", "a.csv")


def test_a_variable_that_is_not_set_is_named(tmp_path):
    with pytest.raises(SureshotError, match=r"The variable \$NOWHERE is not set; it names"):
        pick(tmp_path / "$NOWHERE" / "msvd", "a.csv")


def test_lines_come_without_space_marks_and_empty_ones(tmp_path):
    path = tmp_path / "list.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\r\n two \n \nthree")
    assert read_lines(path) == ["one", "two", "three"]


def test_a_letter_that_is_not_utf8_does_not_cost_the_file(tmp_path):
    path = tmp_path / "list.txt"
    path.write_bytes("a café\nb".encode("latin-1"))
    assert read_lines(path) == ["a caf�", "b"]


def test_a_table_gives_the_columns_asked_for(tmp_path):
    path = put(tmp_path / "t.csv", 'id,more,text\n1,x,"a, b"\n\n2,y,"two\r\nlines"\n3')
    assert read_table(path, "text", "id") == [
        {"text": "a, b", "id": "1"},
        {"text": "two\r\nlines", "id": "2"},
        {"text": "", "id": "3"},
    ]


@pytest.mark.parametrize(("text", "has"), [("id,txt\n1,2\n", "id, txt"), ("", "none")])
def test_a_column_that_is_not_there_is_named(tmp_path, text, has):
    with pytest.raises(SureshotError, match=f"t.csv has no column text; it has {has}"):
        read_table(put(tmp_path / "t.csv", text), "text")


def test_a_comma_outside_quotes_is_no_end_of_a_sentence(tmp_path):
    path = put(tmp_path / "t.csv", "id,text\n1,fine,\n2,a man, a plan\n")
    with pytest.raises(SureshotError, match=r"t\.csv, line 3: 3 values where the first line has 2"):
        read_rows(path)


def test_what_is_not_json_is_named_with_its_line(tmp_path):
    with pytest.raises(SureshotError, match=r"a\.json is not JSON: Expecting .*line 2 "):
        read_annotation(put(tmp_path / "a.json", '{"a": 1,\n'))
    with pytest.raises(SureshotError, match=r"b\.json is not JSON: it nests too deeply"):
        read_annotation(put(tmp_path / "b.json", "[" * 100_000))


@pytest.mark.parametrize("read", [read_lines, read_annotation, read_rows])
def test_a_file_that_cannot_be_read_is_named(tmp_path, read):
    with pytest.raises(SureshotError, match=r"gone cannot be read: no such file"):
        read(tmp_path / "gone")


def test_texts_of_a_list():
    assert sentences([" a ", "a"]) == ["a", "a"]
    for other in ("abc", None, ["a", 1], {"a": "b"}):
        with pytest.raises(TypeError, match="no list of texts"):
            sentences(other)


BROKEN = [lambda x: x["a"], lambda x: x[None], lambda x: [][0], lambda x: x.items, lambda x: int(x)]


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("value", [None, "abc"])
def test_what_does_not_fit_says_what_should(tmp_path, broken, value):
    message = r"a\.json is not as expected \(.+\); it should hold ids\."
    with pytest.raises(SureshotError, match=message), expecting(tmp_path / "a.json", "ids"):
        broken(value)


def test_objects_come_with_the_numbers_of_their_lines(tmp_path):
    path = put(tmp_path / "a.jsonl", '\ufeff{"a": "x\u2028y"}\r\n\n \n{"b": [1]}')
    assert read_json_lines(path) == [(1, {"a": "x\u2028y"}), (4, {"b": [1]})]
    assert read_json_lines(put(tmp_path / "empty.jsonl")) == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"a": 1', "line 2 is not JSON: Expecting"),
        ('{"a": 1} {"a": 2}', "line 2 is not JSON: Extra data"),
        ("[1, 2]", r"line 2: \[1, 2\] is no JSON object"),
        ("9" * 5000, "line 2 is not JSON: it holds a number of 5000 digits"),
    ],
)
def test_a_line_that_is_no_object_is_named(tmp_path, line, reason):
    path = put(tmp_path / "a.jsonl", f'{{"a": 1}}\n{line}\n')
    with pytest.raises(SureshotError, match=f"{path}, {reason}"):
        read_json_lines(path)
