import pytest

from sureshot.errors import ModelError
from sureshot.models.encoders.bundled import package_folder


def test_a_folder_is_found_without_an_import() -> None:
    assert (package_folder("sureshot", "sureshot") / "errors.py").is_file()


def test_a_package_that_is_missing_is_named_with_its_mend() -> None:
    with pytest.raises(ModelError, match=r"needs the package no-such-thing.*pip install no-such"):
        package_folder("no_such_thing", "no-such-thing")
