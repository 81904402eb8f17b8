"""The prompt that stays."""

import json

import pytest

from tests.cli.terminal import in_terminal, spawn


def test_query_after_query_is_answered(library):
    typed = b"green\nmagenta\n\n"
    code, sent = in_terminal("search", "-k", "1", "--db", library.db, typed=typed, NO_COLOR="1")
    assert code == 0
    assert sent.index("search> ") < sent.index("scenes.mp4") < sent.index("yellow.mp4")
    assert sent.count("Not calibrated") == 1
    assert "Traceback" not in sent


def test_ctrl_d_ends_it(library):
    code, sent = in_terminal("search", "--db", library.db, reply=(b"search> ", b"\x04"))
    assert code == 0
    assert "Traceback" not in sent


def test_what_says_nothing_is_asked_for_again(library):
    typed = b"\xe2\x80\x8b\nblue\n\n"  # a space of no width
    code, sent = in_terminal("search", "-k", "1", "--db", library.db, typed=typed, NO_COLOR="1")
    assert (code, "The query is empty" in sent, "scenes.mp4" in sent) == (0, True, True)


def test_answers_may_be_for_programs(library):
    arguments = ("search", "--json", "-k", "1", "--db", library.db)
    sent = in_terminal(*arguments, typed=b"green\n\n", columns=10_000)[1]
    (line,) = [line for line in sent.splitlines() if line.startswith("{")]
    assert json.loads(line)["query"] == "green"


def test_without_a_terminal_a_query_is_needed(library):
    ran = spawn("search", "--db", library.db, stdin=b"red\n")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("sureshot: Give one of: a query, ")


@pytest.mark.parametrize("option", ["--open", "--explain"])
def test_options_about_one_answer_need_its_query(library, option):
    code, sent = in_terminal("search", option, "1", "--db", library.db, typed=b"\n", NO_COLOR="1")
    assert code == 2
    assert "give one query with them" in sent
