"""Make the bundled model again, from public packages and the research data.

    make model                                  # all of it, into the package
    python -m benchmarks.bundled [--to .cache/bundled] [--set runs=3 epochs=2] [--part 0.25]
        [--without cocoval ade] [--write]

Stages: what enters the tuned blocks of the image network for every frame; what the networks as
they come make of items; maps beside them; runs of tuning, whose weights are averaged; the share of
the way from the first weights to these; recalls. Then, from these weights, runs that tune the whole
image network from the frames themselves, some of them as phones take them badly; their mean, share
and recalls. Each stage is kept in the folder, and a stage in pieces of a minute or two, so it may
be killed at any time and goes on when called again; a call for more runs begins with those that are
there. ``results.json`` in a folder for each model has the recalls, the losses and the seconds that
each stage took.

With ``--write`` the weights go into the package, and what knows them is made next: bank,
calibration card, model card, documents. ``--set`` changes settings of the training, ``--part``
takes the first part of each data set and ``--without`` leaves families of pictures out, whose
recalls are printed as well: so settings are chosen.
"""

import argparse
import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.numpy import save_file

from benchmarks.bundled import maps
from benchmarks.bundled.fit import LEG, WHOLE, Settings, train
from benchmarks.bundled.items import (
    CAPTIONED,
    Item,
    caption_words,
    captioned,
    digest_of,
    tests,
    training,
    validation,
)
from benchmarks.bundled.measure import Hits, Seen, choose_share, hits, recalls, shown
from benchmarks.bundled.network import HALF, Network
from benchmarks.bundled.states import FRAMES, Look, bad_images, images, states_of
from sureshot.files import file_digest, replace_file, write_text
from sureshot.models.encoders.backbone import Backbone
from sureshot.models.encoders.bundled import head_path, image_network, load_head, words_path
from sureshot.models.hub_bank import BUNDLED

Weights = dict[str, torch.Tensor]
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_GALLERY = 132  # pictures of a family that was left out, as many as a small library has videos
_GALLERIES = 8  # of a family at most
_ALL_FRAMES = 12  # of a video that is asked for
PIECE = 256  # items that are encoded before states are kept; --part takes whole pieces
# What knows the weights, and is made after them, in this order.
AFTER = {
    "bank": "benchmarks.bundled.bank --write --cache {to}/encoded",
    "calibration card": "benchmarks.trust --write --to results/trust --cache {to}/encoded",
    "model card": "benchmarks.bundled.card --training {results}",
    "bank in 16 bits": "benchmarks.bundled.bank --model bundled-bf16 --write --cache {to}/encoded",
    "card in 16 bits": "benchmarks.trust --model bundled-bf16 --write --cache {to}/encoded",
    "documents": "pytest -q tests/test_documents.py tests/cli/test_json.py",
}


class Results:
    """What was found and how long it took, in a file that is whole after each change.

    Args:
        path: the file.
        part: of the training, ``ends`` or ``whole``; None is all of it.
    """

    def __init__(self, path: Path, part: str | None = None) -> None:
        self.path, self._began = path, time.monotonic()
        self._all: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
        self.found = self._all if part is None else self._all.setdefault(part, {})

    def lap(self, stage: str) -> None:
        """Count the time since the last lap as time of a stage."""
        now = time.monotonic()
        seconds = self.found.setdefault("seconds", {})
        seconds[stage] = round(seconds.get(stage, 0.0) + now - self._began, 1)
        self._began = now
        self._keep()

    def took(self, stage: str, seconds: float) -> None:
        """A stage that knows how long it took, maybe in an earlier call."""
        self.found.setdefault("seconds", {})[stage] = round(seconds, 1)
        self._began = time.monotonic()
        self._keep()

    def once(self, stage: str, name: str, make: Callable[[], Any]) -> Any:
        """A value that is made only if the file does not have it."""
        if name not in self.found:
            self.found[name] = make()
            self.lap(stage)
        return self.found[name]

    def measured(
        self, name: str, network: Network, galleries: Mapping[str, Sequence[Seen]]
    ) -> None:
        """Keep the recalls of a network, unless they are there."""

        def found() -> dict[str, list[float]]:
            several = {kind: [hits(network, s) for s in seen] for kind, seen in galleries.items()}
            return _recalls(several, galleries)

        self.once("measuring", name, found)

    def _keep(self) -> None:
        write_text(self.path, json.dumps(self._all, indent=1) + "\n")


@dataclass(frozen=True, slots=True)
class Data:
    """What is trained on, and galleries by kind; some of validation are to choose by."""

    train: Seen
    validation: dict[str, list[Seen]]
    chosen_by: tuple[str, ...]
    tests: dict[str, list[Seen]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute, fit, tune, measure, and write with --write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to", type=Path, default=Path(".cache/bundled"))
    parser.add_argument("--without", nargs="*", default=[], choices=CAPTIONED)
    parser.add_argument("--part", type=float, default=1.0, help="share of the items (default all)")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", dest="changed")
    parser.add_argument("--leg", type=int, default=LEG, help="steps between saves")
    parser.add_argument("--device", default="cpu", help="such as cuda (not tried yet)")
    parser.add_argument("--write", action="store_true", help="ship it")
    options = parser.parse_args(arguments)
    settings = changed(Settings(), options.changed)
    whole = replace(changed(WHOLE, options.changed), block=0)
    sets = sets_of(options.part)
    folder = folder_of(options.to, (settings, whole), sets, options.without)
    # The ends of the networks, then the whole of them from there.
    ends, head = folder / "ends.safetensors", folder / "head.safetensors"
    for part, of, begin, end in (("ends", settings, None, ends), ("whole", whole, ends, head)):
        results = Results(folder / "results.json", part)
        if not end.exists():
            asked = tests() if options.write else {}
            tuned = tune(
                *(of, sets, options.without, asked, options.to, results, options.leg),
                begin=begin,
                device=options.device,
            )
            average(tuned, results, end)
            del tuned
        print(f"{part}:")
        _print(results.found)
    if options.write:
        write(_trained(sets, options.without), Results(folder / "results.json"))


def changed(settings: Settings, given: Sequence[str]) -> Settings:
    """Settings with some in the form NAME=VALUE in place of their own."""
    kinds = {name: type(value) for name, value in asdict(settings).items()}
    pairs = dict(one.split("=", 1) for one in given)
    return replace(settings, **{name: kinds[name](value) for name, value in pairs.items()})


class Tuned(NamedTuple):
    """A network, the data, and the weights that runs began and ended with."""

    network: Network
    data: Data
    first: Weights
    ends: list[Weights]

    def put(self, last: Weights, share: float) -> None:
        """Give the network the weights at a share of the way."""
        between = {name: weight.lerp(last[name], share) for name, weight in self.first.items()}
        self.network.load_state_dict(between, strict=False)


def tune(
    settings: Settings,
    sets: dict[str, list[Item]],
    without: Sequence[str],
    asked: Mapping[str, list[Item]],
    to: Path,
    results: Results,
    leg: int = LEG,
    begin: Path | None = None,
    device: str = "cpu",
) -> Tuned:
    """States, what it begins with, and runs, each measured on validation.

    Args:
        begin: weights that the runs begin with; None is maps that are fitted.
    """
    found = results.found
    found["settings"] = asdict(settings)
    data = _read(sets, without, asked, settings.block, to, results, device)
    network = Network(settings.layers, settings.block).to(device)
    items, states = data.train.items, data.train.states
    found["items"] = dict(Counter(item.family for item in items))
    if begin is None:
        lap = partial(results.lap, "features")
        maps.fit(network, items, maps.features_of(network, items, states, to / "features", lap), to)
        results.lap("maps")
    else:
        network.load(load_head("", begin))
    first = {name: weight.clone() for name, weight in network.trained().items()}
    tuned = Tuned(network, data, first, [])
    results.measured("first", network, {**data.validation, **data.tests})
    for run in range(settings.runs):
        name = f"run {run + 1}"
        tuned.put(first, 0.0)
        found[f"losses of {name}"], seconds = train(network, items, states, settings, run, to, leg)
        results.took(name, seconds)
        results.measured(name, network, data.validation)
        tuned.ends.append({n: weight.clone() for n, weight in network.trained().items()})
    return tuned


def average(tuned: Tuned, results: Results, path: Path) -> None:
    """The mean of the runs, at the share of the way that validation chooses, kept in a file."""
    network, data, found = tuned.network, tuned.data, results.found
    mean = {n: torch.stack([end[n] for end in tuned.ends]).mean(0) for n in tuned.first}
    ways: dict[float, list[Hits]] = {}
    for share in SHARES:
        tuned.put(mean, share)
        several = {kind: [hits(network, s) for s in seen] for kind, seen in data.validation.items()}
        found[f"share {share}"] = _recalls(several, data.validation)
        ways[share] = [h for kind in data.chosen_by for h in several[kind]]
        results.lap("measuring")
    found["share"] = share = choose_share(ways)
    galleries = {**data.validation, **data.tests}
    for number, end in enumerate(tuned.ends, 1):
        tuned.put(end, share)
        results.measured(f"run {number} at the share", network, galleries)
    tuned.put(mean, share)
    results.measured("mean", network, galleries)
    with replace_file(path) as fresh:
        save_file(weights(network), fresh)


def write(items: Sequence[Item], results: Results) -> None:
    """Ship the weights, and make what knows them; each part once for these weights."""
    head = results.path.parent / "head.safetensors"
    if not head_path().exists() or file_digest(head_path()) != file_digest(head):
        with replace_file(head_path()) as fresh:
            fresh.write_bytes(head.read_bytes())
        # Of the head before; made again where the processor computes in 16 bits.
        shutil.rmtree(BUNDLED["bundled-bf16"], ignore_errors=True)
    known = caption_words(items)
    write_text(words_path(), "".join(f"{word} {n}\n" for word, n in known.items()))
    environment = {**os.environ, "SURESHOT_UPDATE_DOCUMENTS": "1"}
    places = {"to": results.path.parents[1], "results": results.path}
    for name, command in AFTER.items():
        if name in results.found.setdefault("made", []) or (not HALF and "16 bits" in name):
            continue
        words = [part.format(**places) for part in command.split()]
        subprocess.run([sys.executable, "-m", *words], check=True, env=environment)
        results.found["made"].append(name)
        results.lap(name)


def weights(network: Network) -> dict[str, np.ndarray]:
    """All that was trained, in half precision, by the names that the encoder reads."""
    found = {"frame.labels": network.labels()}
    for name, weight in network.trained().items():
        if name not in ("log_scale", "label.weight"):
            renamed = name.replace("bert.", "text.network.").replace("image.", "frame.network.")
            found[renamed] = weight
    return {name: weight.detach().half().cpu().numpy() for name, weight in found.items()}


def sets_of(part: float) -> dict[str, list[Item]]:
    """All that there is by data set, or the first part of each."""
    train = training()
    sets = {name: [i for i in train if i.family == name] for name in ("msrvtt", "flickr8k")}
    sets["captioned"] = list(captioned())
    return {n: some[: math.ceil(part * len(some) / PIECE) * PIECE] for n, some in sets.items()}


def _is_trained(item: Item, without: Sequence[str]) -> bool:
    return item.family not in without and not item.held_out


def _trained(sets: dict[str, list[Item]], without: Sequence[str]) -> list[Item]:
    return [item for some in sets.values() for item in some if _is_trained(item, without)]


def folder_of(to: Path, settings: Any, sets: dict[str, list[Item]], without: Sequence[str]) -> Path:
    """The folder of a model: other settings or items make another one."""
    what = (settings, maps.EPOCHS, digest_of(_trained(sets, without)))
    folder = to / hashlib.sha256(repr(what).encode()).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _read(
    sets: dict[str, list[Item]],
    without: Sequence[str],
    asked: Mapping[str, list[Item]],
    block: int,
    to: Path,
    results: Results,
    device: str,
) -> Data:
    backbone = Backbone(image_network, device, None, "torch")

    def seen(items: list[Item], name: str, frames: int = FRAMES, look: Look = images) -> Seen:
        place = to / f"states-{block}" / name.replace(" ", "-")
        lap = partial(results.lap, "states")
        return Seen(items, states_of(items, backbone, block, place, frames, lap, look))

    def galleries_of(kinds: Mapping[str, list[Item]]) -> dict[str, list[Seen]]:
        """Each kind as it is; videos for the whole network also as phones take them badly."""
        found = {n: [seen(items, n, _ALL_FRAMES)] for n, items in kinds.items()}
        for name, items in kinds.items():
            if block == 0 and name.startswith("MSR-VTT"):
                bad = f"bad {name}"
                found[bad] = [seen(items, bad, _ALL_FRAMES, bad_images)]
        return found

    parts = [seen(items, name) for name, items in sets.items()]
    whole = Seen(
        [item for part in parts for item in part.items],
        [states for part in parts for states in part.states],
    )
    galleries = galleries_of(validation())
    chosen_by = tuple(galleries)
    for family in without:
        rows = np.array([row for row, item in enumerate(whole.items) if item.family == family])
        order = np.random.default_rng(0).permutation(rows)
        order = order[: len(rows) // _GALLERY * _GALLERY].reshape(-1, _GALLERY)[:_GALLERIES]
        galleries[family] = [whole.part(some.tolist()) for some in order]
    return Data(
        train=whole.part([r for r, item in enumerate(whole.items) if _is_trained(item, without)]),
        validation=galleries,
        chosen_by=chosen_by,
        tests=galleries_of(asked),
    )


def _recalls(
    found: Mapping[str, Sequence[Hits]], galleries: Mapping[str, Sequence[Seen]]
) -> dict[str, list[float]]:
    return {kind: recalls(found[kind], [s.items for s in galleries[kind]]) for kind in found}


def _print(found: dict[str, Any]) -> None:
    for name, value in found.items():
        if isinstance(value, dict) and all(isinstance(v, list) for v in value.values()):
            print(f"{name}: " + ", ".join(f"{k} {shown(v)}" for k, v in value.items()))
    print(f"share of the way: {found['share']}")
    for stage, seconds in found["seconds"].items():
        print(f"{stage}: {seconds / 60:.1f} min")


if __name__ == "__main__":
    main()
