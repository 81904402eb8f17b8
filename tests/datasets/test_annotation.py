"""Files of annotation: what is read, and what is said where one is not as it should be."""

import _codecs
import os
import pickle
from collections import OrderedDict, defaultdict

import numpy as np
import pytest

from sureshot.datasets.annotation import (
    expecting,
    pick,
    read_annotation,
    read_lines,
    read_objects,
    read_pickle,
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


def test_a_missing_file_folder_or_variable_is_named(tmp_path):
    with pytest.raises(
        SureshotError, match=rf"{tmp_path} has no a\.csv or b\.csv; give the folder"
    ):
        pick(tmp_path, "a.csv", "b.csv")
    with pytest.raises(SureshotError, match=r"nowhere is not a folder"):
        pick(tmp_path / "nowhere", "a.csv")
    with pytest.raises(SureshotError, match=r"The variable \$NOWHERE is not set; it names"):
        pick(tmp_path / "$NOWHERE" / "msvd", "a.csv")


def test_lines_come_without_space_marks_and_empty_ones(tmp_path):
    path = tmp_path / "list.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\r\n two \n \nthree")
    assert read_lines(path) == ["one", "two", "three"]
    path.write_bytes("a café\nb".encode("latin-1"))
    assert read_lines(path) == ["a caf\ufffd", "b"]


def test_a_table_gives_the_columns_asked_for(tmp_path):
    path = put(tmp_path / "t.csv", 'id,more,text\n1,x,"a, b"\n\n2,y,"two\r\nlines"\n3')
    assert read_table(path, "text", "id") == [
        {"text": "a, b", "id": "1"},
        {"text": "two\r\nlines", "id": "2"},
        {"text": "", "id": "3"},
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("id,txt\n1,2\n", r"t\.csv has no column text; it has id, txt"),
        ("", r"t\.csv has no column text; it has none"),
        ("id,text\n1,fine,\n2,a man, a plan\n", r"line 3: 3 values where the first line has 2"),
    ],
)
def test_a_column_that_is_not_there_and_one_too_many_are_named(tmp_path, text, reason):
    with pytest.raises(SureshotError, match=reason):
        read_table(put(tmp_path / "t.csv", text), "text")


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
def test_what_does_not_fit_says_what_should(tmp_path, broken):
    message = r"a\.json is not as expected \(.+\); it should hold ids\."
    with pytest.raises(SureshotError, match=message), expecting(tmp_path / "a.json", "ids"):
        broken("abc")


def test_objects_come_with_the_numbers_of_their_lines(tmp_path):
    path = put(tmp_path / "a.jsonl", '\ufeff{"a": "x\u2028y"}\r\n\n \n{"b": [1]}')
    assert read_objects(path) == [("line 1", {"a": "x\u2028y"}), ("line 4", {"b": [1]})]
    assert read_objects(put(tmp_path / "empty.jsonl")) == []


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
        read_objects(path)


PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


class Trap:
    """Calls something when it is unpickled the usual way."""

    def __init__(self, call, *arguments):
        self.reduced = call, arguments

    def __reduce__(self):
        return self.reduced


@pytest.fixture
def read(tmp_path):
    def call(content, arrays=True):
        path = tmp_path / "features.pickle"
        path.write_bytes(content)
        return read_pickle(path, "set of features", "fetch it anew", arrays=arrays)

    return call


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3)),
        np.arange(6, dtype=np.float16)[::-2],
        np.arange(6, dtype=">i4"),
        np.array([[True, False]]),
        np.array(2.5),
        np.zeros((0, 4), np.uint8),
        np.float64("nan"),
        np.int64(7),
    ],
    ids=lambda array: f"{array.dtype.str}{array.shape}",
)
def test_arrays_come_out_as_they_went_in(read, array, protocol):
    found = read(pickle.dumps({"video7": [array]}, protocol))["video7"][0]
    np.testing.assert_array_equal(found, array)
    assert np.asarray(found).shape == array.shape
    if isinstance(array, np.ndarray):
        assert found.dtype == array.dtype


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_array_of_objects_is_a_list_of_them(read, protocol):
    rows = np.empty(2, object)
    rows[:] = [np.arange(3.0), None]
    first, second = read(pickle.dumps(OrderedDict(video7=rows), protocol))["video7"]
    assert first.tolist() == [0, 1, 2] and second is None


@pytest.mark.parametrize("core", ["core", "_core"])
def test_old_and_new_numpy_are_read(read, core):
    content = pickle.dumps(defaultdict(list, video7=np.arange(3.0)), 2)
    for now in (b"numpy._core.", b"numpy.core."):
        content = content.replace(now, f"numpy.{core}.".encode())
    assert read(content)["video7"].tolist() == [0, 1, 2]


def test_an_array_that_python_2_wrote_is_read(read):
    # {'v': numpy.array([1.0, 200.0], 'f4')} with byte strings, as Python 2 wrote them
    content = (
        b"\x80\x02}q\x00U\x01vq\x01cnumpy.core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\n"
        b"q\x03K\x00\x85q\x04U\x01bq\x05\x87q\x06Rq\x07(K\x01K\x02\x85q\x08cnumpy\ndtype\n"
        b"q\tU\x02f4q\nK\x00K\x01\x87q\x0bRq\x0c(K\x03U\x01<q\rNNNJ\xff\xff\xff\xff"
        b"J\xff\xff\xff\xffK\x00tq\x0eb\x89U\x08\x00\x00\x80?\x00\x00HCq\x0ftq\x10bs."
    )
    assert read(content)["v"].tolist() == [1.0, 200.0]


@pytest.mark.parametrize("arrays", [True, False])
@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (os.system, ("touch {0}",)),
        (eval, ("open('{0}', 'w')",)),
        (getattr, ("x", "y")),
        (np.load, ("{0}", None, True)),
        (np.memmap, ("{0}", "u1", "w+", 0, (3,))),
        (_codecs.encode, ("x", "rot13")),
    ],
)
def test_nothing_is_run(read, tmp_path, call, arguments, arrays):
    trace = tmp_path / "trace"
    filled = [one.format(trace) if isinstance(one, str) else one for one in arguments]
    content = pickle.dumps({"video7": Trap(call, *filled)})
    with pytest.raises(SureshotError, match=r"asks for .*, which no set of features needs, so it"):
        read(content, arrays)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.array(["a", "b"]), "an array of 'U1'"),
        (np.array([b"a"]), "an array of 'S1'"),
        (np.zeros(2, [("a", "f4")]), "an array with named fields"),
        (np.zeros(2, "M8[s]"), "an array of 'M8'"),
    ],
)
def test_only_arrays_of_numbers_are_made(read, array, reason):
    with pytest.raises(SureshotError, match=f"asks for {reason}"):
        read(pickle.dumps(array))
    with pytest.raises(SureshotError, match=r"asks for numpy.*, which no set of features needs"):
        read(pickle.dumps(array), arrays=False)


class Called:
    """A call of something that a pickle names."""

    def __init__(self, name, *arguments):
        self.name, self.arguments = name, arguments


class Forger(pickle._Pickler):
    """Writes calls of what is not there to be called."""

    def save(self, value, save_persistent_id=True):
        if not isinstance(value, Called):
            return super().save(value, save_persistent_id)
        self.write(b"c" + value.name.encode() + b"\n")
        super().save(value.arguments)
        return self.write(b"R")


def forged(tmp_path, shape, name="f4", content=b"\0" * 8):
    """An array whose description its maker made up."""
    with (tmp_path / "forged").open("wb") as file:
        kind = Called("numpy\ndtype", name)
        Forger(file, 2).dump(
            Called("numpy.core.numeric\n_frombuffer", bytearray(content), kind, shape, "C")
        )
    return (tmp_path / "forged").read_bytes()


@pytest.mark.parametrize(
    ("shape", "name", "reason"),
    [
        ((3,), "f4", "is no whole pickle: an array of shape"),
        ((-1,), "f4", "is no whole pickle"),
        ((2**40,), "f4", "is no whole pickle"),
        ("x", "f4", "is no whole pickle"),
        ((2,), 8, "asks for an array of 8"),
        ((1,), "O", "asks for an array of 'O'"),  # bytes taken for the addresses of objects
        ((2,), "f4,f4", "asks for an array of 'f4,f4'"),
    ],
)
def test_a_description_that_does_not_fit_its_numbers_is_refused(
    read, tmp_path, shape, name, reason
):
    assert read(forged(tmp_path, (2,))).tolist() == [0, 0]
    with pytest.raises(SureshotError, match=reason):
        read(forged(tmp_path, shape, name))


ENDLESS: list = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize("value", [b"", b"nonsense", pickle.dumps([1])[:-3], pickle.dumps(ENDLESS)])
def test_half_a_pickle_and_a_list_within_itself_are_named(read, tmp_path, value):
    with pytest.raises(SureshotError, match=r"features\.pickle is no whole pickle"):
        read(value)
    (tmp_path / "features.pickle").unlink()
    with pytest.raises(SureshotError, match="cannot be read: no such file"):
        read_pickle(tmp_path / "features.pickle", "list", "fetch it")
