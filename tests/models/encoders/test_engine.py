import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from sureshot.errors import ModelError
from sureshot.models.encoders import load_encoder, openvino

installed = pytest.mark.skipif(not find_spec("openvino"), reason="OpenVINO is not installed")


@pytest.fixture(autouse=True)
def no_wish(monkeypatch):
    monkeypatch.delenv(openvino.VARIABLE, raising=False)


@installed
def test_openvino_computes_where_it_is_installed_but_not_for_a_gpu(monkeypatch):
    assert openvino.engine_for(None, "cpu") == "openvino"
    assert openvino.engine_for("torch", "cpu") == "torch"
    assert openvino.engine_for(None, "cuda") == "torch"
    with pytest.raises(ModelError, match=r"not on cuda; name one of `device=` and `engine=`"):
        openvino.engine_for("openvino", "cuda")
    monkeypatch.setenv(openvino.VARIABLE, "torch")
    assert openvino.engine_for(None, "cpu") == "torch"
    assert openvino.engine_for("openvino", "cpu") == "openvino"


def test_an_unknown_engine_is_refused_by_its_name(monkeypatch):
    with pytest.raises(ModelError, match=r"no engine 'steam'; known: torch, openvino\."):
        openvino.engine_for("steam", "cpu")
    monkeypatch.setenv(openvino.VARIABLE, "steam")
    with pytest.raises(ModelError, match="steam"):
        openvino.engine_for(None, "cpu")


def test_torch_computes_where_it_is_not_installed_unless_it_was_asked_for(monkeypatch):
    monkeypatch.setattr(openvino, "OPENVINO", "no_such_package_here")
    assert openvino.engine_for(None, "cpu") == "torch"
    with pytest.raises(ModelError, match=r"is not installed\. pip install 'sureshot\[fast\]'"):
        openvino.engine_for("openvino", "cpu")


def test_a_broken_installation_is_done_without_unless_it_was_asked_for(tmp_path):
    (tmp_path / "openvino.py").write_text("raise ImportError('libopenvino.so.1 is missing')")
    code = (
        "from sureshot.models.encoders.openvino import engine_for\n"
        "print(engine_for(None, 'cpu'))\n"
        "try: engine_for('openvino', 'cpu')\n"
        "except Exception as error: print(error)"
    )
    lines = _run(code, tmp_path, PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    assert lines[0] == "torch"
    assert "OpenVINO is installed but does not work (libopenvino.so.1 is missing)." in lines[1]


@installed
def test_it_tells_nobody_that_it_is_imported(tmp_path):
    # A plain import reports to a server and notes that in the home folder.
    code = (
        "import sys\n"
        "from sureshot.models.encoders.openvino import openvino\n"
        "assert openvino().Core().available_devices\n"
        "print([name for name in sys.modules if 'telemetry' in name or '.ovc' in name])"
    )
    assert _run(code, tmp_path, HOME=str(tmp_path)) == ["[]"]
    assert list(tmp_path.iterdir()) == []


def test_models_that_have_one_engine_say_so():
    with pytest.raises(ModelError, match=r"tiny computes with torch alone; leave out `engine=`"):
        load_encoder("tiny", engine="openvino")


def _run(code, folder, **environment):
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | environment,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()
