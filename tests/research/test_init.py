"""The names that `sureshot.research` gives."""

import pytest

from sureshot import research


def test_each_public_name_is_listed_documented_and_comes_from_its_home():
    assert research.__all__ == sorted(research.__all__)
    assert set(research.__all__) <= set(dir(research))
    for name in research.__all__:
        value = getattr(research, name)
        assert value.__module__.startswith("sureshot.research.") and value.__doc__


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="tran"):
        research.tran  # noqa: B018
