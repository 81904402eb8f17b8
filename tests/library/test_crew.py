"""Machines of a Ray cluster write what one process writes; what stops them is one sentence."""

import builtins
import socket
from pathlib import Path
from typing import Any

import pytest

from sureshot.errors import SureshotError
from sureshot.library.crew import on_ray
from sureshot.library.indexing import index
from tests.encoded import contents


def connect(address: str) -> str:
    """What is said where there is no cluster to connect with."""
    with pytest.raises(SureshotError) as told, on_ray(address):
        pass
    return str(told.value)


def test_without_ray_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "ray":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert "pip install 'sureshot[ray]'" in connect("auto")


@pytest.mark.slow
@pytest.mark.timeout(1200)
class TestCluster:
    """With Ray, which takes a gigabyte and some time."""

    def test_where_nobody_answers_it_is_said_how_to_start_one(self) -> None:
        pytest.importorskip("ray")
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        told = connect(f"127.0.0.1:{port}")
        assert f"No Ray cluster answers at 127.0.0.1:{port} (" in told
        assert "`ray start`" in told
        assert "on a machine of the cluster" in connect("ray://127.0.0.1:10001")

    @pytest.mark.filterwarnings("ignore")
    def test_three_machines_write_what_one_process_writes(self, tmp_path: Path) -> None:
        pytest.importorskip("ray")
        from tests.faults.many import clips, cluster

        videos = clips(tmp_path / "videos", 12)
        alone = index(videos, db=tmp_path / "one", model="tiny")
        with cluster() as made:
            many = index(videos, db=tmp_path / "many", model="tiny", ray=made.address)
            again = index(videos, db=tmp_path / "many", model="tiny", ray=made.address)
        assert contents(tmp_path / "many") == contents(tmp_path / "one")
        assert (many.summary, sorted(many.failed)) == (alone.summary, sorted(alone.failed))
        assert (again.indexed, again.unchanged) == (0, 12)
        assert many.warnings == []
