"""Whole official models on a tiny CLIP: what they compute, and how their scripts train them.

A set is a folder: ``inputs.npz``, ``clip_hf`` with the CLIP, and three files a model. Its README
says how it was made; sizes are those of the files. ``whole.zip`` holds one set. Folders named by
SURESHOT_GOLDEN take its place, those of them that hold ``inputs.npz``.
"""

import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from torch import Tensor, nn

from sureshot.models.encoders.clip import ClipEncoder
from sureshot.models.model import Model, StemConfig
from sureshot.models.systems.base import Codes, Sizes, TextTokens, VideoTokens
from sureshot.research.training.encoder_tuning import TunedClip
from sureshot.research.training.optim import Optimizer, multiplier, new_optimiser
from sureshot.research.training.recipe import TrainingConfig
from sureshot.research.training.run import new_model
from sureshot.research.training.step import gradients, update
from tests.golden import VARIABLE, folders

LOSS, NORM, MOVE = 1e-5, 1e-4, 2e-4  # relative differences allowed, see the README of the set
# Their gradient is zero up to rounding, of which Adam makes a step.
_UNSEEN = ("k_proj.bias", "_weight_fc.2.bias", "_w.2.bias", "score.bias")

# Our parameters, or some of their rows, below each other; and whether they are turned.
Source = tuple[tuple[str | tuple[str, slice], ...], bool]


def sets() -> list[Path]:
    """Folders and archives that hold whole models."""
    if not os.environ.get(VARIABLE):
        return [Path(__file__).with_suffix(".zip")]
    return [folder for folder in folders() if (folder / "inputs.npz").is_file()]


@dataclass(frozen=True)
class Official:
    """One official model of one set."""

    folder: Path
    name: str

    @cached_property
    def told(self) -> dict[str, Any]:
        """Its numbers; a test of a model that the set lacks is skipped."""
        path = self.folder / f"{self.name}.json"
        if not path.is_file():
            pytest.skip(f"{self.folder} has no {path.name}")
        told: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return told

    @cached_property
    def arrays(self) -> dict[str, Tensor]:
        """Its vectors and noise."""
        return _tensors(self.folder / f"{self.name}.npz")

    @cached_property
    def head(self) -> dict[str, Tensor]:
        """Weights of its head that were drawn at random."""
        path = self.folder / f"{self.name}_head.npz"
        return _tensors(path) if path.is_file() else {}

    @cached_property
    def inputs(self) -> dict[str, Tensor]:
        """The batch of the set."""
        return _tensors(self.folder / "inputs.npz")

    @property
    def config(self) -> dict[str, Any]:
        """Its sizes."""
        config: dict[str, Any] = self.told["config"]
        return config

    @cached_property
    def clip(self) -> Path:
        """A folder of the CLIP with a tokenizer, to which token 7 is the word w7."""
        place = self.folder / "clip_hf"
        if not (place / "tokenizer.json").is_file():
            words = {f"w{number}": number for number in range(self.config["vocabulary"])}
            tokenizer = Tokenizer(WordLevel(words, unk_token="w0"))
            tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
            tokenizer.save(str(place / "tokenizer.json"))
        return place

    def texts(self, ids: str = "ids", mask: str | None = "mask") -> list[str]:
        """The texts of the batch; without a mask all of their tokens are real."""
        rows = self.inputs[ids]
        real = torch.ones_like(rows) if mask is None else self.inputs[mask]
        return [
            " ".join(f"w{int(number)}" for number in row[some.bool()])
            for row, some in zip(rows, real, strict=True)
        ]

    def videos(self, frames: str, mask: str | None = None) -> list[np.ndarray]:
        """The prepared frames of each video; without a mask all of them are real."""
        shots = self.inputs[frames].float()
        real = torch.ones(shots.shape[:2]) if mask is None else self.inputs[mask]
        return [film[some.bool()].numpy() for film, some in zip(shots, real, strict=True)]


class Trained:
    """Our model in the place of an official one, with its CLIP, as a training run has it."""

    def __init__(
        self,
        official: Official,
        system: Mapping[str, object],
        head: Mapping[str, Source],
        optimizer: Optimizer,
        *,
        openai: bool = True,
        seed: int = 0,
    ) -> None:
        self.official, self.optimizer = official, optimizer
        encoder = ClipEncoder.load(str(official.clip), "cpu")
        sizes = Sizes(encoder.dim, encoder.channels)
        self.model: Model = new_model(StemConfig(), system, sizes, seed, encoder)
        self.tuned = TunedClip(encoder, self.model.system)
        self.modules = nn.ModuleDict({"model": self.model, "encoder": self.tuned})
        clip = _openai(official.config) if openai else _transformers(self.tuned.network)
        self.sources: dict[str, Source] = {**clip, **head}

    def of(self, values: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """Values of our parameters by official name and in the official layout."""
        for name, (parts, turned) in self.sources.items():
            rows = [_rows(values, part) for part in parts]
            whole = torch.cat(rows) if len(rows) > 1 else rows[0]
            yield name, whole.T if turned else whole

    def weights(self) -> dict[str, Tensor]:
        """All weights by official name."""
        found = {name: weight.detach() for name, weight in self.modules.named_parameters()}
        return {name: weight.clone() for name, weight in self.of(found)}

    def load_head(self) -> None:
        """Take over the weights that the official code drew at random."""
        ours = dict(self.modules.named_parameters())
        with torch.no_grad():
            for name, value in self.official.head.items():
                if name not in self.sources:
                    continue
                parts, turned = self.sources[name]
                value = value.T if turned else value
                places = [_rows(ours, part) for part in parts]
                for place, some in zip(places, value.split(list(map(len, places))), strict=True):
                    place.copy_(some.reshape(place.shape))

    def tokens(
        self, texts: Sequence[str], videos: Sequence[np.ndarray]
    ) -> tuple[TextTokens, VideoTokens]:
        """What the head reads."""
        return self.tuned.texts(texts), self.tuned.videos(videos)

    def codes(self, texts: Sequence[str], videos: Sequence[np.ndarray]) -> tuple[Codes, Codes]:
        """What the head makes of it."""
        seen = self.tokens(texts, videos)
        return self.model.texts(seen[0]), self.model.videos(seen[1])

    def losses(self, texts: Sequence[str], videos: Sequence[np.ndarray]) -> dict[str, float]:
        """Losses of the batch, whose gradients are then there."""
        self.modules.train()
        rows = range(len(texts))

        def embed(chosen: Sequence[int]) -> tuple[Codes, Codes]:
            return self.codes([texts[row] for row in chosen], [videos[row] for row in chosen])

        return gradients(self.model.system, embed, rows, TrainingConfig())

    def norms(self) -> dict[str, float]:
        """Norm of each gradient by official name; none where there is no gradient."""
        found = {
            name: torch.zeros_like(weight) if weight.grad is None else weight.grad
            for name, weight in self.modules.named_parameters()
        }
        return {name: grad.norm().item() for name, grad in self.of(found)}

    def optimiser(self) -> torch.optim.Optimizer:
        """With the groups of the official script."""
        told = self.official.told["parameter_groups"]
        rates = sorted({group.get("initial_lr", group["lr"]) for group in told})
        parts = [(self.tuned, rates[0]), (self.model, rates[-1])]
        return new_optimiser(self.optimizer, parts, told[0]["weight_decay"])

    def groups(self, optimiser: torch.optim.Optimizer) -> list[tuple[set[str], float, float]]:
        """Names, rate and decay of each group of an optimiser; frozen weights are in none."""
        place = {weight: name for name, weight in self.modules.named_parameters()}
        named = {
            part if isinstance(part, str) else part[0]: name
            for name, (parts, _) in self.sources.items()
            for part in parts
        }
        return [
            (
                {named[place[weight]] for weight in group["params"] if place[weight] in named},
                group["rate"],
                group["weight_decay"],
            )
            for group in optimiser.param_groups
        ]


class Padding(nn.Module):
    """A tuned CLIP that also gives what stands at padding, as the official codes do."""

    def __init__(
        self,
        tuned: TunedClip,
        official: Official,
        frames: str = "frames_zero",
        *,
        masked: bool = False,
    ) -> None:
        super().__init__()
        self.tuned, self.official, self.masked = tuned, official, masked
        self.shots = official.inputs[frames].float()

    def texts(self, texts: Sequence[str]) -> TextTokens:
        """All texts of the batch, whatever is asked for."""
        ids, mask = self.official.inputs["ids"].long(), self.official.inputs["mask"].bool()
        if not self.masked:
            return TextTokens(*self.tuned.encoder.read_texts(ids), mask)
        network: Any = self.tuned.network
        seen = network.text_model(input_ids=ids, attention_mask=mask.long())
        project = network.text_projection
        sentence, words = project(seen.pooler_output), project(seen.last_hidden_state)
        return TextTokens(sentence, words, torch.ones_like(mask))

    def videos(self, videos: Sequence[np.ndarray]) -> VideoTokens:
        """All videos of the batch, whatever is asked for."""
        seen = self.tuned.videos(list(self.shots.numpy()))
        return (
            seen if self.masked else seen._replace(mask=self.official.inputs["frame_mask"].bool())
        )


def check_gradients(trained: Trained, told: Mapping[str, Any], per_group: bool = True) -> None:
    """Compare the gradients that are there with the official norms, by parameter and group."""
    found = trained.norms()
    largest = max(found.values())
    for name, norm in told.get("per_parameter", {}).items():
        assert found[name] == pytest.approx(norm, rel=NORM, abs=1e-6 * largest), name
    for module, norm in told["per_module"].items():
        parts = [found[name] for name in found if name == module or name.startswith(f"{module}.")]
        assert np.linalg.norm(parts) == pytest.approx(norm, rel=NORM, abs=1e-6 * largest), module
    if per_group:
        for group, norm in zip(
            trained.official.told["parameter_groups"], told["per_group"], strict=True
        ):
            parts = [found[name] for name in group["names"] if name in found]
            assert np.linalg.norm(parts) == pytest.approx(norm, rel=NORM), group.get("meaning")


def check_groups(trained: Trained) -> None:
    """Compare what is trained at which rate and decay with the official groups."""
    still = set(trained.official.told["initialisation"]["clip_frozen"])
    official = [
        (
            {name for name in group["names"] if name in trained.sources} - still,
            group.get("initial_lr", group["lr"]),
            group["weight_decay"],
        )
        for group in trained.official.told["parameter_groups"]
    ]
    found = trained.groups(trained.optimiser())
    assert len(found) == sum(bool(names) for names, _, _ in official)
    for names, rate, decay in official:
        assert not names or (names, pytest.approx(rate), pytest.approx(decay)) in found


def check_start(trained: Trained) -> None:
    """Compare the first weights with those of the official code: copies, constants, spreads."""
    ours = trained.weights()
    for name, told in trained.official.told["initialisation"]["head"].items():
        if name not in ours:
            continue
        value = ours[name]
        if "copied_from_clip" in told:
            origin, _, rows = told["copied_from_clip"].partition("[0:")
            expected = ours[f"clip.{origin}"]
            expected = expected[: int(rows[:-1])] if rows else expected
            assert torch.equal(value, expected), name
        elif "constant" in told:
            torch.testing.assert_close(value, torch.full_like(value, told["constant"]), msg=name)
        elif "eye" in told:
            assert torch.equal(value, torch.eye(*value.shape)), name
        elif value.numel() > 1:
            # Both are draws: their spreads agree as well as the number of values allows.
            assert value.std().item() == pytest.approx(told["std"], rel=6 / value.numel() ** 0.5), (
                name
            )


def check_steps(
    trained: Trained,
    texts: Sequence[str],
    videos: Sequence[np.ndarray],
    losses: Sequence[float],
    before: Callable[[int], None] = lambda step: None,
) -> None:
    """Take the official steps and compare losses and how far each weight has moved."""
    told = trained.official.told
    group = told["parameter_groups"][0]
    total = int(
        group.get("t_total") or min(map(int, told["schedule"]["multiplier_by_total_and_step"]))
    )
    optimiser, system = trained.optimiser(), trained.model.system
    start = trained.weights()
    for step, record in enumerate(told["steps"]["records"]):
        before(step)
        assert trained.losses(texts, videos)["loss"] == pytest.approx(losses[step], rel=LOSS)
        share = multiplier(step, total, group.get("warmup", 0.1), trained.optimizer)
        update(optimiser, trained.modules, system, share=share, clip=1.0)
        now = trained.weights()
        check_moved(start, now, record, told["parameter_groups"])


def check_moved(
    start: Mapping[str, Tensor],
    now: Mapping[str, Tensor],
    record: Mapping[str, Any],
    groups: Sequence[Mapping[str, Any]],
) -> None:
    """Compare how far weights are from the start, and some of them, with an official record."""
    moved = record.get("delta_norm")
    if moved == "zero for every parameter":
        assert all(torch.equal(now[name], weight) for name, weight in start.items())
    if isinstance(moved, dict):
        names = [name for name in moved if name in now and not name.endswith(_UNSEEN)]
        change = {name: now[name] - start[name] for name in names}
        for name in names:
            allowed = _rounding(start[name], change[name])
            if name.endswith("in_proj_bias"):
                allowed += change[name].chunk(3)[1].norm().item()
            assert change[name].norm().item() == pytest.approx(
                moved[name], rel=MOVE, abs=allowed
            ), name
        for group in groups:
            inside = [name for name in group["names"] if name in change]
            found, told = (
                np.linalg.norm([length(name) for name in inside])
                for length in (lambda name: change[name].norm().item(), moved.__getitem__)
            )
            assert found == pytest.approx(told, rel=MOVE), group
    for name, values in record["values"].items():
        if name in now:
            found = now[name].flatten()[: len(values)]
            torch.testing.assert_close(found, torch.tensor(values), rtol=1e-5, atol=1e-6, msg=name)


def _rounding(start: Tensor, change: Tensor) -> float:
    """What one number does to the length of a change that is rounded the other way.

    Changes of CLIP are about as large as the spacing of its numbers.
    """
    spacing = start.abs().max().item() * 2**-23
    return spacing * change.abs().max().item() / max(change.norm().item(), 1e-30)


def pooling(ours: str = "model.system.pooled.pool.") -> dict[str, Source]:
    """The cross-attention pooling of X-Pool: official names and ours."""
    pairs = {
        "cross_attn.q_proj": "queries",
        "cross_attn.k_proj": "keys",
        "cross_attn.v_proj": "values",
        "cross_attn.out_proj": "out",
        "linear_proj": "linear",
        "layer_norm1": "norm_inputs",
        "layer_norm2": "norm_pooled",
        "layer_norm3": "norm_out",
    }
    return {
        f"pool_frames.{theirs}.{kind}": ((f"{ours}{name}.{kind}",), False)
        for theirs, name in pairs.items()
        for kind in ("weight", "bias")
    }


def block(official: str, ours: str) -> dict[str, Source]:
    """A transformer block: official names and ours."""
    pairs = {
        "attn.in_proj_": "queries_keys_values.",
        "attn.out_proj.": "out.",
        "ln_1.": "norm_attention.",
        "mlp.c_fc.": "widen.",
        "mlp.c_proj.": "narrow.",
        "ln_2.": "norm_mlp.",
    }
    return {
        f"{official}{theirs}{kind}": ((f"{ours}{name}{kind}",), False)
        for theirs, name in pairs.items()
        for kind in ("weight", "bias")
    }


def _openai(config: Mapping[str, Any]) -> dict[str, Source]:
    """CLIP's weights by the names of OpenAI, and where they are."""
    at = "encoder.network."
    found: dict[str, Source] = {
        "clip.logit_scale": (("model.system.log_scale",), False),
        "clip.positional_embedding": (
            (f"{at}text_model.embeddings.position_embedding.weight",),
            False,
        ),
        "clip.token_embedding.weight": (
            (f"{at}text_model.embeddings.token_embedding.weight",),
            False,
        ),
        "clip.text_projection": ((f"{at}text_projection.weight",), True),
        "clip.visual.class_embedding": ((f"{at}vision_model.embeddings.class_embedding",), False),
        "clip.visual.positional_embedding": (
            (f"{at}vision_model.embeddings.position_embedding.weight",),
            False,
        ),
        "clip.visual.conv1.weight": (
            (f"{at}vision_model.embeddings.patch_embedding.weight",),
            False,
        ),
        "clip.visual.proj": ((f"{at}visual_projection.weight",), True),
    }
    norms = {
        "clip.ln_final": "text_model.final_layer_norm",
        "clip.visual.ln_pre": "vision_model.pre_layrnorm",
        "clip.visual.ln_post": "vision_model.post_layernorm",
    }
    for official, ours in norms.items():
        for kind in ("weight", "bias"):
            found[f"{official}.{kind}"] = ((f"{at}{ours}.{kind}",), False)
    pairs = {
        "attn.out_proj.": "self_attn.out_proj.",
        "ln_1.": "layer_norm1.",
        "mlp.c_fc.": "mlp.fc1.",
        "mlp.c_proj.": "mlp.fc2.",
        "ln_2.": "layer_norm2.",
    }
    for official, ours, count in (
        ("clip.transformer", "text_model", config["text_layers"]),
        ("clip.visual.transformer", "vision_model", config["vision_layers"]),
    ):
        for number in range(count):
            there = f"{official}.resblocks.{number}."
            here = f"{at}{ours}.encoder.layers.{number}."
            for kind in ("weight", "bias"):
                found[f"{there}attn.in_proj_{kind}"] = (
                    tuple(f"{here}self_attn.{letter}_proj.{kind}" for letter in "qkv"),
                    False,
                )
                for theirs, name in pairs.items():
                    found[f"{there}{theirs}{kind}"] = ((f"{here}{name}{kind}",), False)
    return found


def _transformers(network: nn.Module) -> dict[str, Source]:
    """CLIP's weights by the names of transformers, and where they are."""
    found: dict[str, Source] = {
        f"clip.{name}": ((f"encoder.network.{name}",), False)
        for name, _ in network.named_parameters()
    }
    return found | {"clip.logit_scale": (("model.system.log_scale",), False)}


def unpacked(source: Path, place: Path) -> Path:
    """A set in a folder of its own, to which a tokenizer may be added."""
    if source.suffix == ".zip":
        with zipfile.ZipFile(source) as archive:
            archive.extractall(place)
        return place
    shutil.copytree(source, place, dirs_exist_ok=True)
    return place


def _rows(values: Mapping[str, Tensor], part: str | tuple[str, slice]) -> Tensor:
    return values[part] if isinstance(part, str) else values[part[0]][part[1]]


def _tensors(path: Path) -> dict[str, Tensor]:
    with np.load(path) as file:
        read = {name: torch.from_numpy(file[name]) for name in file.files}
    return {
        name: value.float() if value.is_floating_point() else value for name, value in read.items()
    }
