"""Every engine gives what torch gives, at every shape of frames, and none calls home."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sureshot.errors import ArgumentError, ModelError, is_installed
from sureshot.models.encoders import engines, load_encoder
from sureshot.models.encoders.backbone import GRID, WIDEST, resized_whole
from sureshot.models.encoders.bundled import BridgeEncoder, BundledEncoder, image_network
from sureshot.models.encoders.engines import OnnxNetwork, OpenvinoNetwork, choose

COMPILED = [
    pytest.param(name, marks=pytest.mark.skipif(not is_installed(name), reason="not installed"))
    for name in ("openvino", "onnxruntime")
]
every_compiled = pytest.mark.parametrize("engine", COMPILED)


@pytest.fixture(autouse=True)
def no_wish(monkeypatch):
    monkeypatch.delenv(engines.VARIABLE, raising=False)


@pytest.fixture
def only(monkeypatch):
    """Makes some engines the only ones that are installed."""

    def keep(*names):
        monkeypatch.setattr(engines, "is_installed", lambda name: name in names)

    return keep


@every_compiled
def test_an_engine_computes_on_the_processor_alone(engine, monkeypatch):
    assert choose(engine, None) == choose(engine, "cpu") == (engine, "cpu")
    with pytest.raises(ModelError, match=r"not on cuda; name one of --device and --engine"):
        choose(engine, "cuda")
    monkeypatch.setenv(engines.VARIABLE, engine)
    assert choose(None, "cpu") == (engine, "cpu")
    assert choose("torch", "cpu") == ("torch", "cpu")


def test_a_gpu_is_taken_by_torch(monkeypatch):
    monkeypatch.setattr(engines, "_sees_gpu", lambda: True)
    monkeypatch.setattr(engines, "_torch_device", lambda device: device or "cuda")
    assert choose(None, None) == choose(None, "cuda") == ("torch", "cuda")
    assert choose(None, "cpu")[1] == "cpu"


def test_an_unknown_engine_is_refused_by_its_name(monkeypatch):
    with pytest.raises(
        ArgumentError, match=r"no engine 'steam'; known: onnxruntime, openvino, torch\."
    ):
        choose("steam", "cpu")
    monkeypatch.setenv(engines.VARIABLE, "steam")
    with pytest.raises(ArgumentError, match="steam"):
        choose(None, "cpu")


def test_the_first_engine_that_works_is_taken(only):
    assert choose(None, "cpu") == ("onnxruntime", "cpu")
    only("openvino", "torch")
    if is_installed("openvino"):
        assert choose(None, "cpu") == ("openvino", "cpu")
    only("torch")
    assert choose(None, "cpu") == ("torch", "cpu")
    only()
    with pytest.raises(
        ModelError,
        match=r"ONNX Runtime is not installed\. OpenVINO is not installed\. PyTorch is not "
        r"installed\. Install the first: pip install 'onnxruntime<",
    ):
        choose(None, None)


def test_what_was_asked_for_and_is_not_there_names_a_way_on(only):
    only("torch")
    with pytest.raises(
        ModelError, match=r"OpenVINO is not installed\. .* 'openvino<.*; or use --engine torch\."
    ):
        choose("openvino", None)
    only("openvino")
    with pytest.raises(ModelError, match=r"PyTorch is not .*; or use --engine openvino\."):
        choose("torch", None)
    with pytest.raises(ModelError, match=r"^The device cuda needs PyTorch\. PyTorch is not"):
        choose(None, "cuda")


def test_in_16_bits_only_openvino_computes_and_no_other_engine_is_advised(only):
    for given in ({"engine": "torch"}, {"device": "cuda"}):
        with pytest.raises(ModelError, match=r"by OpenVINO, on the processor. Leave out --engine"):
            load_encoder("bundled-bf16", **given)
    only("onnxruntime")
    with pytest.raises(ModelError, match=r"'openvino<.*; or use --model bundled\.$"):
        assert load_encoder("bundled-bf16").backbone.engine


def test_a_broken_installation_is_done_without_unless_it_was_asked_for(tmp_path):
    for engine in engines.ENGINES[:2]:
        (tmp_path / f"{engine}.py").write_text("raise ImportError('libengine.so.1 is missing')")
    code = (
        "from sureshot.models.encoders.engines import choose\n"
        "print(choose(None, 'cpu')[0])\n"
        "for engine in ('openvino', 'onnxruntime'):\n"
        "    try: choose(engine, 'cpu')\n"
        "    except Exception as error: print(error)"
    )
    lines = _run(code, tmp_path, PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    assert lines[0] == "torch"
    assert "OpenVINO is installed but does not work (libengine.so.1 is missing)." in lines[1]
    assert "ONNX Runtime is installed but does not work (libengine.so.1" in lines[2]
    assert "pip install --force-reinstall --no-deps 'onnxruntime<" in lines[2]


def test_a_library_that_was_cut_short_is_not_loaded(tmp_path):
    (tmp_path / "onnxruntime.py").write_text("import os; os.kill(os.getpid(), 7)  # as Linux does")
    (tmp_path / "engine.cpython-311.so").write_bytes(b"short")
    facts = tmp_path / "onnxruntime-9.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: onnxruntime\nVersion: 9\n")
    (facts / "RECORD").write_text("engine.cpython-311.so,,50\nonnxruntime.py,,5\n")
    code = "from sureshot.models.encoders.engines import why_not\nprint(why_not('onnxruntime'))"
    lines = _run(code, tmp_path, PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    assert lines == [
        "ONNX Runtime is installed but does not work (engine.cpython-311.so is cut short)."
    ]


# Names the sockets that Python's code asks for, and those that libraries have left open.
WATCHED = """
import sys
sys.addaudithook(lambda event, _: event.startswith("socket.") and print(event))
import numpy as np
from pathlib import Path
from sureshot.models.encoders.bundled import BundledEncoder
encoder = BundledEncoder("cpu", engine=sys.argv[1])
encoder.encode_frames(encoder.prepare(np.zeros((1, 64, 64, 3), np.uint8)))
print([name for name in sys.modules if "telemetry" in name or ".ovc" in name])
files = Path("/proc/self/fd")  # of Linux
names = [str(one.readlink()) for one in files.iterdir() if one.is_symlink()]
print([name for name in names if name.startswith("socket:")])
"""


@every_compiled
def test_it_calls_nobody_and_leaves_nothing_behind(engine, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    cache = {"HOME": str(home), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert set(_run(WATCHED, tmp_path, engine, **cache)) == {"[]"}
    assert list(home.iterdir()) == []
    assert [path.name for path in Path(cache["XDG_CACHE_HOME"]).iterdir()] == ["sureshot"]


def _run(code, folder, *arguments, **environment):
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | environment,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


# Every shape that a frame is resized to, from the widest to the tallest.
PRODUCT = sorted(
    {
        resized_whole(np.zeros((1, *shape, 3), np.uint8)).shape[2:]
        for step in range(17)
        for size in [round(240 * WIDEST ** (step / 16))]
        for shape in [(240, size), (size, 240)]
    }
)
# Of these a few, and some that none is.
SHAPES = [*PRODUCT[::5], PRODUCT[-1], (7, 5), (64, 64), (33, 500)]


@pytest.fixture(scope="module")
def torch_one():
    return BundledEncoder("cpu", threads=1, engine="torch")


@pytest.fixture(scope="module")
def compiled():
    """An encoder by an engine, made once."""
    made = {}

    def of(engine):
        return made.setdefault(engine, BundledEncoder("cpu", threads=2, engine=engine))

    return of


def waves(rows, columns, count=2):
    """Frames with something to see at every scale."""
    y, x = np.mgrid[:rows, :columns]
    draw = np.random.default_rng(rows * columns)
    frames = np.zeros((count, 3, rows, columns), np.float64)
    for frame in frames.reshape(-1, rows, columns):
        for scale in (3, 12, 50):
            across, down = draw.uniform(-1, 1, 2) / scale
            frame += np.sin(6.3 * (x * across + y * down) + draw.uniform(0, 6.3))
    return np.uint8((frames / 6 + 0.5) * 255)


@every_compiled
@pytest.mark.parametrize(
    "shapes",
    [pytest.param(SHAPES, id="some"), pytest.param(PRODUCT, id="all", marks=pytest.mark.slow)],
)
def test_vectors_are_those_of_torch(engine, torch_one, compiled, shapes):
    for shape in shapes:
        frames = waves(*shape)
        ours, theirs = compiled(engine).encode_frames(frames), torch_one.encode_frames(frames)
        for name in ("frames", "patches"):
            one, other = getattr(ours, name), getattr(theirs, name)
            assert one.shape == other.shape and one.dtype == other.dtype
            assert np.abs(one - other).max() < 1e-5, (shape, name)
        np.testing.assert_allclose(ours.backbone, theirs.backbone, atol=6e-5)  # of values up to 6
        # Other frames, or the same ones in another order, must not pass for them.
        assert np.abs(ours.frames[0] - theirs.frames[1]).max() > 1e-4


@every_compiled
def test_the_bridge_is_the_same_too(engine):
    frames = waves(225, 400)
    one, other = (
        BridgeEncoder("cpu", engine=name).encode_frames(frames).frames for name in (engine, "torch")
    )
    assert np.abs(one - other).max() < 1e-5


@every_compiled
def test_the_engine_is_no_part_of_the_model(engine, torch_one, compiled):
    other = compiled(engine)
    assert torch_one.fingerprint == other.fingerprint
    assert (torch_one.engine, other.engine) == ("torch", engine)
    assert torch_one.name == other.name == "bundled"


@pytest.mark.skipif(not is_installed("openvino"), reason="only OpenVINO knows bfloat16")
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
        same = (found * torch_one.encode_frames(frames).frames).sum(-1)  # of unit vectors
        assert same.min() > 0.95


@every_compiled
def test_a_network_that_an_engine_cannot_run_is_refused_with_what_to_do(engine, monkeypatch):
    network = OpenvinoNetwork if engine == "openvino" else OnnxNetwork
    weights = image_network()
    weights["stem.conv.weight"] = weights["head.conv.weight"]  # reads 352 channels, not 3
    monkeypatch.setattr(engines, "onnx_model", lambda weights: b"no graph")
    with pytest.raises(ModelError, match=r"cannot run the image network .*Use --engine "):
        network(weights, GRID, 1)
