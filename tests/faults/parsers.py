"""Damaged and hostile files of every kind but media, each read as the verbs read it.

`python -m tests.faults.parsers FOLDER SEED FIRST COUNT [KIND]` reads that many of each kind and
prints what is wrong with them: anything raised but a SureshotError, or a case that takes seconds.
It runs as a process of its own, whose memory is limited.
"""

import json
import random
import resource
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from safetensors import safe_open

from sureshot.cli.search import lines_of
from sureshot.datasets import load_split
from sureshot.datasets.questions import load_questions
from sureshot.errors import SureshotError
from sureshot.library.labels import read_labels
from sureshot.models import encoders
from sureshot.models.checkpoint import Checkpoint
from sureshot.models.hub_bank import Bank
from sureshot.research.reproduction.plan import Plan
from sureshot.research.training.loop import load_state, read_values, save_state
from sureshot.research.training.recipe import Recipe, read_toml
from sureshot.settings import build, override
from sureshot.trust.card import _checksum, load_card
from tests.trained import checkpoint

_ROOT = Path(__file__).parents[2]
_MEMORY = 8 << 30  # bytes of address space that the process may take
_SECONDS = 10  # of the processor that a case may take, on a slow one
_WAITED = 120  # seconds that it may take however busy the machine is
_ODD_TEXTS = (
    "", " ", "\0", "a\0b", "\ud800", "\udc80", "\u202e", "\ufeff", "x" * 100_000, "../" * 2000,
    "-1", "nan", "~nobody/x", "$HOME", "\n", "9" * 5000, "a\tb", "/", "NaN",
)  # fmt: skip
_ODD = (
    None, True, False, 0, -1, -5, 10**9, 2**63, 10**20, 10**299, -(10**299), 0.0, -0.5, 1e308,
    float("nan"), float("inf"), [], {}, [[]], [None], {"a": None}, [1, "a"], {"": {}}, *_ODD_TEXTS,
)  # fmt: skip
_ODD_BYTES = (
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xff", b"\r", b"\n\n", b'"', b"'", b"[", b"{", b"]",
    b"}", b",", b"=", b":", b"\t", b"#", b"[" * 3000, b'{"a":' * 3000, b"9" * 5000, b"9" * 400,
    b"NaN", b"-Infinity", b"1e999", b"nan", b"0x" + b"f" * 4000, b"\\ud800", b"\\u0000",
    b"x" * 200_000, b"a." * 3000, b"null", b"true", b"-1", b'"""', b"[[a]]\n",
)  # fmt: skip

_Reader = Callable[[Path], object]


def _write(path: Path, content: str | bytes | dict[str, Any] | list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, (dict, list)):
        content = json.dumps(content)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def kinds(folder: Path) -> dict[str, tuple[Path, _Reader]]:
    """Of each kind a sound file, in a folder with what belongs to it, and how it is read."""
    made: dict[str, tuple[Path, _Reader]] = {}
    videos = folder / "videos"
    for name in ("a.mp4", "b.mp4", "a.jpg", "video1.mp4"):
        _write(videos / name, b"")

    def add(kind: str, name: str, content: Any, reader: _Reader) -> None:
        path = folder / kind / name
        _write(path, content)
        made[kind] = path, reader

    recipe = (_ROOT / "recipes/uatvr.toml").read_bytes()
    plan = next((_ROOT / "plans").glob("*.toml")).read_bytes()
    add("recipe", "recipe.toml", recipe, Recipe.load)
    add("plan", "plan.toml", plan, lambda path: build(Plan, read_toml(path, "plan")))
    add("set", "set", 'training.rate=[1, 2.5, {a = "b"}]', lambda path: override(
        {"training": {"rate": 1}, "list": [1]}, path.read_bytes().decode("utf-8", "replace")
    ))  # fmt: skip
    whole = {"video": "b.mp4", "right": False, "digest": "ab12"}
    moment = {"video": "a.mp4", "start": 3, "end": 9.5, "right": True}
    some = {"query": "a goal", "moments": [whole], "absent": True, "complete": False}
    lines = "\n".join(json.dumps(one) for one in (some, {"query": "x", "moments": [moment]}))
    add("labels-jsonl", "labels", lines, read_labels)
    add("labels-csv", "labels", "query,video,start,end\ngoal,a.mp4,1:10,75\n", read_labels)
    pair = {"video": "a.mp4", "caption": "a man", "split": "test", "start": 1, "end": 2.5}
    table = 'video,caption,split,start,end\na.mp4,a man,test,1,2\nb.mp4,"two, three",test,,\n'
    for kind, content in (
        ("csv", table), ("tsv", table.replace(",", "\t")), ("jsonl", json.dumps(pair) + "\n")
    ):  # fmt: skip
        add(f"pairs-{kind}", f"pairs.{kind}", content, lambda path: load_split(
            "pairs", "test", path, videos=videos
        ))  # fmt: skip
    add("queries", "queries", "a dog\nein Hund\n", lines_of)
    add("card", "trust.json", _card(), load_card)
    for split, names in _annotations().items():
        _add_annotation(folder, videos, split, names, made)
    _add_models(folder, made)
    return made


def _card() -> dict[str, Any]:
    """The card of the bundled model with few of its scores, so that thousands are read quickly."""
    card = json.loads(Path(encoders.__file__).with_name("trust.json").read_text("utf-8"))
    for depths in card["depths"]:
        depths |= {name: depths[name][:9] for name in ("scores", "weights")}
    del card["checksum"]
    return card | {"checksum": _checksum(card)}


def _annotations() -> dict[str, dict[str, Any]]:
    """The files of each data set; the first one is damaged."""
    said = ["a man cooks", "a dog"]
    ms = {
        "videos": [{"video_id": "a", "split": "test"}],
        "sentences": [{"video_id": "a", "caption": "a man"}],
    }
    photos = [{"filename": "a.jpg", "split": "test", "sentences": [{"raw": "a man"}]}]
    lsmdc = "a\t0\t1\t0\t1\tSomeone walks.\n"
    return {
        "msrvtt": {"MSRVTT_JSFUSION_test.csv": "key,video_id,sentence\n0,a,a man\n"},
        "msrvtt full": {"MSRVTT_data.json": ms},
        "activitynet": {"val_1.json": {"v_a": {"sentences": said}}},
        "didemo": {"test_data.json": [{"video": "a.mp4", "description": "a man"}]},
        "charades": {"Charades_v1_test.csv": "id,script,descriptions\na,a man,a;b\n"},
        "lsmdc": {"LSMDC16_challenge_1000_publictect.csv": lsmdc},
        "msvd": {"captions_msvd.json": {"a": [["a", "man"], "a dog"]}, "test_list.txt": "a\n"},
        "vatex": {"vatex_data.json": [{"videoID": "a", "enCap": said}], "test_list.txt": "a\n"},
        "flickr8k": {"dataset_flickr8k.json": {"images": photos}},
    }


def _add_annotation(
    folder: Path, videos: Path, named: str, files: dict[str, Any], made: dict[str, Any]
) -> None:
    dataset, _, protocol = named.partition(" ")
    root = folder / named.replace(" ", "-")
    for name, content in files.items():
        _write(root / name, content)
    made[named] = (
        root / next(iter(files)),
        lambda path: load_split(dataset, "test", root, protocol=protocol or None, videos=videos),
    )


def _add_models(folder: Path, made: dict[str, tuple[Path, _Reader]]) -> None:
    place = folder / "questions"
    asked = [{"question": "who?", "answer": "man", "video_id": 1, "category_id": 2}]
    _write(place / "test_qa.json", asked)
    made["questions"] = (
        place / "test_qa.json",
        lambda path: load_questions(place, "test", videos=folder / "videos"),
    )
    # Each file has a folder of its own, so that the other is sound.
    for kind, name in (("config", "config.json"), ("weights", "model.safetensors")):
        model = folder / kind
        checkpoint("uatvr", "linear").save_pretrained(model)
        made[kind] = model / name, lambda path: Checkpoint.from_pretrained(path.parent)
    _add_state(folder / "state" / "state.safetensors", made)
    bank = folder / "bank" / "bank.safetensors"
    bank.parent.mkdir()
    shutil.copy(Path(encoders.__file__).with_name(bank.name), bank)
    with safe_open(bank, framework="numpy") as file:
        model_of = file.metadata()["model"]
    made["bank"] = bank, lambda path: Bank.load(path.parent, model_of)


def _add_state(path: Path, made: dict[str, tuple[Path, _Reader]]) -> None:
    layer = torch.nn.Linear(3, 2)
    memory = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(3)).sum().backward()
    memory.step()
    save_state(path, layer, memory, {"epoch": 1, "settings": {"rate": 0.1}})

    def read(path: Path) -> None:
        read_values(path)
        load_state(path, layer, memory)

    made["state"] = path, read


def mutant(data: bytes, kind: str, draw: random.Random) -> bytes:
    """The content of a case: a value of it replaced, or its bytes damaged."""
    if draw.random() < 0.5 and data[:1] in (b"{", b"[") and kind != "set":
        try:
            return _odd_value(data, kind, draw)
        except (ValueError, TypeError):  # lines of JSON, or what JSON cannot hold
            pass
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        # The header of weights is at their begin; elsewhere every place is as good.
        near = len(changed) if draw.random() < 0.5 else min(len(changed), 3000)
        at = draw.randrange(near + 1)
        width = draw.choice((0, 1, 1, 8, 64, 1000))
        match draw.randrange(5):
            case 0:
                changed[at : at + width] = b""
            case 1:
                changed[at : at + draw.choice((0, width))] = draw.choice(_ODD_BYTES)
            case 2:
                changed[at : at + 1] = bytes([draw.randrange(256)])
            case 3:
                changed[at:at] = changed[max(0, at - width) : at] * draw.choice((1, 2, 50))
            case 4:
                del changed[at:]
    return bytes(changed)


def _odd_value(data: bytes, kind: str, draw: random.Random) -> bytes:
    """JSON with one value replaced, left out or added; the checksum of a card is mended."""
    lines = data.splitlines() if kind.endswith("jsonl") else [data]
    row = draw.randrange(len(lines))
    tree = json.loads(lines[row])
    where: Any = tree
    while True:
        key = draw.choice(list(where) if isinstance(where, dict) else range(len(where)))
        inner = where[key]
        if not isinstance(inner, (dict, list)) or not inner or draw.random() < 0.15:
            break
        where = inner
    if draw.random() < 0.15:
        del where[key]
    elif draw.random() < 0.1 and isinstance(where, dict):
        where[draw.choice(_ODD_TEXTS)] = draw.choice(_ODD)
    else:
        where[key] = draw.choice(_ODD)
    if kind == "card":
        tree.pop("checksum", None)
        tree["checksum"] = _checksum({k: v for k, v in tree.items() if k != "checksum"})
    lines[row] = json.dumps(tree).encode()
    return b"\n".join(lines)


def _late(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"takes more than {_SECONDS} s of the processor, or {_WAITED} s")


def _limit(seconds: int, waited: int) -> None:
    """Seconds of the processor and of the clock after which a case is late; 0 ends that."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, waited)


def main() -> None:
    """Try the cases and print what is wrong with them."""
    folder, seed, first, count = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    signal.signal(signal.SIGPROF, _late)
    signal.signal(signal.SIGALRM, _late)
    known = kinds(folder)
    wanted = sys.argv[5:] or list(known)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    refused = 0
    for kind in wanted:
        path, reader = known[kind]
        reader(path)  # once as it should be: an import that is broken off would break all others
        sound = path.read_bytes()
        for number in range(first, first + count):
            path.write_bytes(mutant(sound, kind, random.Random(f"{seed}/{kind}/{number}")))
            (folder / "at").write_text(f"{kind} {number}")
            _limit(_SECONDS, _WAITED)
            try:
                reader(path)
            except SureshotError as error:
                refused += 1
                if not str(error) or len(str(error)) > 3000:
                    print(f"case {kind} {number}: a message of {len(str(error))} characters")
            except BaseException as error:
                why = f"{type(error).__name__}: {str(error)[:120]!r}"
                print(f"case {kind} {number}: {why}", flush=True)
            finally:
                _limit(0, 0)
        path.write_bytes(sound)
    print(f"a reason {refused}\nread {count * len(wanted) - refused}\ndone")


if __name__ == "__main__":
    main()
