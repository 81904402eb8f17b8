"""What goes wrong with an index is said in a sentence with the mend."""

import pytest

from sureshot.errors import StoreError
from sureshot.store.tables import as_store_error


def told(error: Exception, place: str = "/home/ann/index") -> str:
    with pytest.raises(StoreError) as raised, as_store_error(place, "read"):
        raise error
    return str(raised.value)


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ("No space left on device, /rustc/x.rs:1", "free some space"),
        ("Permission denied", "you may write to"),
        ("Commit conflict", "run the same command again"),
        ("something new", "may be damaged"),
    ],
)
def test_the_mend_fits_what_went_wrong(text, mend) -> None:
    said = told(OSError(text))
    assert said.startswith("Cannot read the index at /home/ann/index: ")
    assert mend in said
    assert "rustc" not in said


def test_what_could_not_be_made_is_not_told_to_be_damaged() -> None:
    with pytest.raises(StoreError) as raised, as_store_error("/proc/index", "create"):
        raise FileNotFoundError(2, "No such file or directory", "/proc/index")
    assert str(raised.value).endswith("Choose another place with `db=`.")


def test_of_a_storage_only_words_of_ours_are_said() -> None:
    text = "Generic S3 error: Error performing GET http://u:p@host/b: <Code>ExpiredToken</Code>"
    said = told(OSError(text), "s3://films/index")
    assert "the credentials have expired" in said
    assert "host" not in said
    assert "Check the address" in said
