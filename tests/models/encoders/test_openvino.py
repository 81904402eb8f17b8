"""The network by OpenVINO gives what torch gives, at every shape of frames."""

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from sureshot.errors import ModelError
from sureshot.models.encoders import openvino
from sureshot.models.encoders.backbone import GRID
from sureshot.models.encoders.bundled import BundledEncoder
from sureshot.models.encoders.openvino import CompiledNetwork

installed = pytest.mark.skipif(not find_spec("openvino"), reason="OpenVINO is not installed")


@pytest.fixture(autouse=True)
def no_wish(monkeypatch):
    monkeypatch.delenv(openvino.VARIABLE, raising=False)


@installed
def test_openvino_computes_where_it_is_installed_but_not_for_a_gpu(monkeypatch):
    assert openvino.engine_for(None, "cpu") == "openvino"
    assert openvino.engine_for("torch", "cpu") == "torch"
    assert openvino.engine_for(None, "cuda") == "torch"
    with pytest.raises(ModelError, match=r"not on cuda; name one of --device and --engine"):
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
    with pytest.raises(
        ModelError, match=r"is not installed\. Install it with pip install 'openvino<"
    ):
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


SHAPES = [(260, 340), (225, 400), (256, 352), (400, 225), (300, 300), (7, 5), (64, 64), (190, 474)]


@pytest.fixture(scope="module")
def torch_one():
    return BundledEncoder("cpu", threads=1, engine="torch")


@pytest.fixture(scope="module")
def openvino_one():
    return BundledEncoder("cpu", threads=2, engine="openvino")


def waves(rows, columns, count=3):
    """Frames with something to see at every scale."""
    y, x = np.mgrid[:rows, :columns]
    draw = np.random.default_rng(rows * columns)
    frames = np.zeros((count, 3, rows, columns), np.float64)
    for frame in frames.reshape(-1, rows, columns):
        for scale in (3, 12, 50):
            across, down = draw.uniform(-1, 1, 2) / scale
            frame += np.sin(6.3 * (x * across + y * down) + draw.uniform(0, 6.3))
    return np.uint8((frames / 6 + 0.5) * 255)


def cosines(one, other):
    lengths = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
    return (one * other).sum(-1)[lengths > 0] / lengths[lengths > 0]


@pytest.mark.parametrize("shape", SHAPES)
def test_vectors_are_those_of_torch(shape, torch_one, openvino_one):
    frames = waves(*shape)
    ours, theirs = openvino_one.encode_frames(frames), torch_one.encode_frames(frames)
    for name in ("frames", "patches", "backbone"):
        one, other = getattr(ours, name), getattr(theirs, name)
        assert one.shape == other.shape and one.dtype == other.dtype
        assert cosines(one, other).min() > 1 - 1e-5, name
    # Other frames, or the same ones in another order, must not pass for them.
    own, other = (np.abs(ours.frames[0] - theirs.frames[k]).max() for k in (0, 1))
    assert own < other / 2


def test_the_engine_is_no_part_of_the_model(torch_one, openvino_one):
    assert torch_one.fingerprint == openvino_one.fingerprint
    assert (torch_one.engine, openvino_one.engine) == ("torch", "openvino")
    assert torch_one.name == openvino_one.name == "bundled"


def test_bfloat16_is_another_model_and_only_where_the_processor_has_it(torch_one):
    half = BundledEncoder("cpu", precision="bf16")
    assert half.name == "bundled-bf16" and half.fingerprint != torch_one.fingerprint
    # What it makes of texts needs no such numbers.
    sentence = half.encode_texts(["a dog"]).sentence
    assert np.array_equal(sentence, torch_one.encode_texts(["a dog"]).sentence)
    frames = waves(225, 400)
    try:
        found = half.encode_frames(frames).frames
    except ModelError as error:
        assert "This processor has no bfloat16" in str(error)
        assert "Index with --model bundled" in str(error)
    else:
        assert cosines(found, torch_one.encode_frames(frames).frames).min() > 0.95


def test_a_network_that_openvino_cannot_run_is_refused_with_what_to_do(torch_one, monkeypatch):
    network = torch_one.backbone.net
    monkeypatch.setattr(network, "stem", network.head)  # reads 352 channels, not 3
    with pytest.raises(ModelError, match=r"cannot run the image network .*--engine torch"):
        CompiledNetwork(network, GRID, 1)
