"""The log of a run."""

import json

from sureshot.research.training.loop import Log, read_log


def test_entries_are_on_disk_as_soon_as_they_are_written(tmp_path):
    with Log(tmp_path / "run" / "log.jsonl") as log:
        log.write(step=1, loss=0.5)
        assert read_log(tmp_path / "run" / "log.jsonl") == [{"step": 1, "loss": 0.5}]
        log.write(step=2, name="köln")
    lines = (tmp_path / "run" / "log.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [
        {"step": 1, "loss": 0.5},
        {"step": 2, "name": "köln"},
    ]


def test_what_a_resumed_run_does_again_is_dropped_with_what_was_half_written(tmp_path):
    path = tmp_path / "log.jsonl"
    with Log(path) as log:
        for step in (1, 2, 3):
            log.write(step=step)
    with path.open("a") as file:
        file.write('{"step": 4, "lo')
    assert [entry["step"] for entry in read_log(path)] == [1, 2, 3]
    with Log(path, after=2) as log:
        log.write(step=3, again=True)
    assert read_log(path) == [{"step": 1}, {"step": 2}, {"step": 3, "again": True}]


def test_a_run_from_the_start_starts_its_log_anew(tmp_path):
    for _ in range(2):
        with Log(tmp_path / "log.jsonl") as log:
            log.write(step=1)
    assert read_log(tmp_path / "log.jsonl") == [{"step": 1}]
    assert read_log(tmp_path / "none.jsonl") == []
