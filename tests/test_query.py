"""Queries as they are typed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sureshot.errors import QueryError
from sureshot.query import clean, other_script


def test_a_query_is_one_line_without_control_characters():
    assert clean(" a\x1b[31mred\r\n\tdog\x07 ") == "a [31mred dog"
    assert clean("caf\udce9") == "caf?"
    assert clean("日本 \u3000 語") == "日本 語"


@given(st.text(st.characters(), max_size=30))
def test_whatever_is_typed_is_cleaned_or_refused(text):
    try:
        cleaned = clean(text)
    except QueryError:
        return
    assert cleaned == clean(cleaned) == cleaned.strip()
    assert cleaned.encode().decode() == cleaned
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in cleaned)


@pytest.mark.parametrize("text", ["", " ", "\t\x1b", "\u200b"])
def test_a_query_that_says_nothing_is_refused(text):
    with pytest.raises(QueryError, match="The query is empty"):
        clean(text)


def test_a_script_is_another_one_where_most_letters_are_not_latin():
    assert other_script("красная car")
    assert other_script("赤い車")
    assert not other_script("a long café 赤")
    assert not other_script("123")
