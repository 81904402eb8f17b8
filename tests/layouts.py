"""Tiny data sets in the layouts of the papers' benchmarks, on the videos of `tests.walls`."""

import pickle
import shutil
from pathlib import Path

from tests.datasets.files import put
from tests.walls import COLOURS, SPLITS

TIMES = "00.00.00.000\t00.00.01.000\t00.00.00.000\t00.00.01.000"
CHARADES = "id,subject,scene,quality,relevance,verified,script,objects,descriptions,actions,length"
NAMES = ("msrvtt", "msrvtt_full", "msvd", "vatex", "didemo", "lsmdc", "charades", "activitynet")


def sentences(number: int) -> list[str]:
    """Two sentences about one of the videos."""
    first, second = COLOURS[number % 6], COLOURS[(number + 1 + number // 6) % 6]
    return [f"{first} then {second}", f"a {second} wall after {first}"]


def benchmark(name: str, root: Path, videos: Path) -> Path:
    """Write the annotation of one of `NAMES` into a new folder, its videos below.

    Six videos to train on, three to choose on where the benchmark has a validation set (else nine
    to train on), three to test on.
    """
    ids = {number: _spelled(name, number) for number in range(len(SPLITS))}
    for number, spelled in ids.items():
        place = root / "videos" / f"{spelled}.mp4"
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(videos / f"{number}.mp4", place)
    of = {split: [n for n, own in enumerate(SPLITS) if own == split] for split in set(SPLITS)}
    _WRITERS[name](root, ids, of)
    return root


def _spelled(name: str, number: int) -> str:
    if name == "vatex":
        return f"clip{number:07}_000000_000010"
    return {"activitynet": f"v_clip{number}", "lsmdc": f"0001_Film_{number}"}.get(
        name, f"video{number}"
    )


def _lists(root, ids, of):
    for split, rows in of.items():
        put(root / f"{split}_list.txt", "\n".join(ids[row] for row in rows))


def _msrvtt(root, ids, of):
    parts = {row: "validate" if s == "val" else s for s, rows in of.items() for row in rows}
    rows = [{"caption": text, "video_id": ids[row]} for row in ids for text in sentences(row)]
    videos = [{"video_id": ids[row], "split": parts[row]} for row in ids]
    put(root / "MSRVTT_data.json", {"videos": videos, "sentences": rows})
    for name, rows in (("9k", [*of["train"], *of["val"]]), ("7k", of["train"])):
        trained = "\n".join(ids[row] for row in rows)
        put(root / f"MSRVTT_train.{name}.csv", f"video_id\n{trained}")
    tested = "\n".join(f"r,m,{ids[row]},{sentences(row)[0]}" for row in of["test"])
    put(root / "MSRVTT_JSFUSION_test.csv", f"key,vid_key,video_id,sentence\n{tested}")


def _msvd(root, ids, of):
    _lists(root, ids, of)
    words = {ids[row]: [text.split() for text in sentences(row)] for row in ids}
    (root / "raw-captions.pkl").write_bytes(pickle.dumps(words))


def _vatex(root, ids, of):
    _lists(root, ids, of)
    shutil.copyfile(root / "test_list.txt", root / "test1k5_sec_list.txt")
    put(root / "ref_captions.json", {ids[row]: sentences(row) for row in ids})


def _didemo(root, ids, of):
    _lists(root, ids, of)
    for split, rows in of.items():
        moments = [
            {"video": f"{ids[row]}.mp4", "description": text}
            for row in rows
            for text in sentences(row)
        ]
        put(root / f"{split}_data.json", moments)


def _lsmdc(root, ids, of):
    names = ("annos_training", "annos_val", "challenge_1000_publictect")
    for split, name in zip(("train", "val", "test"), names, strict=True):
        lines = [f"{ids[row]}\t{TIMES}\t{sentences(row)[0]}" for row in of[split]]
        if split == "train":  # a clip that is listed twice
            lines.append(f"{ids[of[split][0]]}\t{TIMES}\t{sentences(of[split][0])[1]}")
        put(root / f"LSMDC16_{name}.csv", "\n".join(lines))


def _charades(root, ids, of):
    for name, rows in (("train", [*of["train"], *of["val"]]), ("test", of["test"])):
        lines = [CHARADES]
        for row in rows:
            script, description = sentences(row)
            told = f"{description};{script}"
            lines.append(f"{ids[row]},HR43,Kitchen,6,7,Yes,{script},wall,{told},c092 0.00 1.20,1.2")
        put(root / f"Charades_v1_{name}.csv", "\n".join(lines))


def _activitynet(root, ids, of):
    for name, listed, rows in (
        ("train", "train_ids", [*of["train"], *of["val"]]),
        ("val_1", "val_ids", of["test"]),
    ):
        put(root / f"{name}.json", {ids[row]: {"sentences": sentences(row)} for row in rows})
        put(root / f"{listed}.json", [ids[row] for row in rows])


_WRITERS = {
    "msrvtt": _msrvtt,
    "msrvtt_full": _msrvtt,
    "msvd": _msvd,
    "vatex": _vatex,
    "didemo": _didemo,
    "lsmdc": _lsmdc,
    "charades": _charades,
    "activitynet": _activitynet,
}
HELD_OUT = ("msrvtt", "charades", "activitynet")  # have no validation set


def written(folder: Path, videos: Path, names: tuple[str, ...] = NAMES) -> str:
    """Write data sets below a folder; their part of a plan, as text."""
    lines = []
    for name in names:
        root = benchmark(name, folder / name, videos)
        dataset = name.removesuffix("_full")
        more = '\nprotocol = "full"' if name == "msrvtt_full" else ""
        if name in HELD_OUT:
            lines.append(f"[data.{name}]\nhold_out = 3")
        parts = ("train", "test") if name in HELD_OUT else ("train", "val", "test")
        lines += [
            f'[data.{name}.{part}]\ndataset = "{dataset}"\nroot = "{root}"{more}' for part in parts
        ]
    return "\n\n".join(lines) + "\n\n"
