"""Names that are imported when they are first asked for."""

import json

import pytest

from sureshot.lazy import lazy


def test_a_name_comes_from_its_home_and_others_are_attribute_errors():
    get, names = lazy(__name__, {"loads": "json"})
    assert get("loads") is json.loads
    assert {"loads", "pytest"} <= set(names())
    with pytest.raises(AttributeError, match=f"module '{__name__}' has no attribute 'lods'"):
        get("lods")
