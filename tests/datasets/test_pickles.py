"""Pickles: arrays come out as they went in, and nothing in a file is run."""

import os
import pickle
from collections import OrderedDict, defaultdict

import numpy as np
import pytest

from sureshot.datasets.annotation import read_pickle
from sureshot.errors import SureshotError

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
        (np.fromfile, ("{0}",)),
        (pickle.loads, (b"x",)),
        (np.memmap, ("{0}", "u1", "w+", 0, (3,))),
    ],
)
def test_nothing_is_run(read, tmp_path, call, arguments, arrays):
    trace = tmp_path / "trace"
    filled = [one.format(trace) if isinstance(one, str) else one for one in arguments]
    content = pickle.dumps({"video7": Trap(call, *filled)})
    with pytest.raises(SureshotError, match=r"asks for .*, which no set of features needs, so it"):
        read(content, arrays)
    assert not trace.exists()


def test_arrays_are_refused_where_none_are_expected(read):
    with pytest.raises(SureshotError, match=r"asks for numpy.*, which no set of features needs"):
        read(pickle.dumps([np.zeros(2)]), arrays=False)


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


@pytest.mark.parametrize("content", [b"", b"\x80\x04", b"nonsense", pickle.dumps([1, 2, 3])[:-3]])
def test_half_a_pickle_is_named(read, tmp_path, content):
    with pytest.raises(SureshotError, match=r"features\.pickle is no whole pickle"):
        read(content)
    (tmp_path / "features.pickle").unlink()
    with pytest.raises(SureshotError, match="cannot be read: no such file"):
        read_pickle(tmp_path / "features.pickle", "list", "fetch it")


def test_a_list_within_itself_ends(read):
    endless: list = []
    endless.append(endless)
    with pytest.raises(SureshotError, match="is no whole pickle"):
        read(pickle.dumps(endless))
