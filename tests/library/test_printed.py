"""What is printed for programs and said to people."""

import json

from sureshot.errors import option
from sureshot.library.results import as_typed, json_text


def test_sentences_name_options_of_the_terminal_and_data_stay() -> None:
    said = f"Choose {option('db')}."
    values = json.loads(json_text({"warnings": [said], "query": said, "fix": said}))
    assert values == {
        "schema": 2,
        "warnings": ["Choose --db."],
        "query": said,
        "fix": "Choose --db.",
    }


def test_a_document_is_one_line_that_steers_no_terminal() -> None:
    text = json_text({"path": "a\n\x1b[31mü"})
    assert text.isprintable() and json.loads(text)["path"] == "a\n\x1b[31mü"
    assert json_text({"path": "ü"}, ascii_only=True).isascii()


def test_what_people_read_has_no_formatting_characters() -> None:
    assert as_typed("a\x1b[2Jb") == "a\ufffd[2Jb"
