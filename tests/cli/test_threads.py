"""A search computes with one thread, unless it is told otherwise."""

import os

from sureshot.cli.terminal import compute_alone


def test_what_the_user_says_stays(monkeypatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    compute_alone()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    compute_alone()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "3"
