"""A trained model in a folder: weights, settings and a card that says what it is.

``config.json`` holds everything needed to build the model again, ``model.safetensors`` the weights;
an encoder that was trained with the model is in ``encoder``. ``README.md``, the card, says what is
in ``config.json``, in ``evaluations.json``, where `sureshot evaluate --record` keeps results, and
in ``trust.json``, and nothing else. Nothing in the folder can run.
"""

import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from safetensors import SafetensorError, safe_open

from sureshot.errors import ModelError, SureshotError
from sureshot.files import CARD as TRUST
from sureshot.files import replace_folder, write_json, write_text
from sureshot.media.sampling_rule import Sampling, SamplingKind
from sureshot.metrics.report import RecallReport
from sureshot.models import encoders
from sureshot.models.encoders.base import Encoder
from sureshot.models.huggingface import (
    BANK,
    CONFIG,
    ENCODER,
    MEASURED,
    README,
    WEIGHTS,
    is_checkpoint,
    without_folders,
)
from sureshot.models.model import Model, Stem, StemConfig
from sureshot.models.systems.base import Sizes, load_system
from sureshot.models.weights import save_weights, with_weights
from sureshot.settings import Ranged, Within, build, read_json, to_values, within
from sureshot.trust.card import load_card

_WIDEST = 65_536  # numbers of a vector that any encoder gives
FORMAT = 2
_WAYS = {"t2v": "text to video", "v2t": "video to text"}


@dataclass(frozen=True, slots=True)
class EncoderNote(Ranged):
    """The encoder a model was trained on.

    ``name`` is what `sureshot.models.encoders.load_encoder` takes; ``encoder`` is the folder of
    that name in the folder of the checkpoint.
    """

    name: str
    fingerprint: str
    frames: Annotated[int, Within(1, 100_000)]  # most of a video
    dim: Annotated[int, Within(1, _WIDEST)]
    channels: Annotated[int, Within(0, _WIDEST)]
    experts: Mapping[str, int] = field(default_factory=dict)  # length of the rows of each
    sampling: SamplingKind = "uniform"
    fps: Annotated[float | None, Within(0, 10_000)] = None  # sampled from; None is all
    key: ClassVar[str] = "encoder"

    def __post_init__(self) -> None:
        """Refuse sizes that no encoder has."""
        Ranged.__post_init__(self)
        for name, size in self.experts.items():
            within(f"encoder.experts.{name}", size, 1, _WIDEST)

    @property
    def rule(self) -> Sampling:
        """Which frames of a whole video it was trained on."""
        return Sampling(self.sampling, self.fps)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model and what is known of it.

    ``tuned`` writes the encoder that was trained with the model into a new folder; None where the
    encoder was left as it is.
    """

    model: Model
    encoder: EncoderNote
    system: Mapping[str, Any]  # settings, with the ``name``
    recipe: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)  # never on test data while choosing
    note: str = ""  # sentences for the card: data, licences, limits
    tuned: Callable[[Path], None] | None = None

    @property
    def encoder_name(self) -> str:
        """The encoder as people know it; where it was trained too, what it began as."""
        if self.encoder.name != ENCODER:
            return self.encoder.name
        began = self.recipe.get("encoder")
        return str(began.get("name", ENCODER)) if isinstance(began, Mapping) else ENCODER

    def load_encoder(
        self, folder: str | Path, device: str | None = None, engine: str | None = None
    ) -> Encoder:
        """The encoder that the model was trained on, if it is there and has not changed."""
        named = self.encoder.name
        try:
            encoder = encoders.load_encoder(
                str(Path(folder) / ENCODER) if named == ENCODER else named, device, engine
            )
        except ModelError as error:
            raise ModelError(
                f"{folder} needs the encoder {named!r} it was trained on: {error}"
            ) from None
        if encoder.fingerprint != self.encoder.fingerprint:
            raise ModelError(
                f"{folder} was trained on another version of the encoder {named!r}, whose features "
                f"it cannot read. Train it again, or bring back the version of that encoder, or of "
                f"Sureshot, that it was trained with."
            )
        return encoder

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the folder, whole or not at all, in place of an older checkpoint."""
        folder = Path(folder)
        check_free(folder)
        try:
            with replace_folder(folder) as fresh:
                self._write(fresh)
        except (OSError, SafetensorError) as error:
            raise ModelError(f"The checkpoint {folder} cannot be written: {error}") from None

    @classmethod
    def from_pretrained(
        cls, folder: str | Path, device: str | torch.device = "cpu"
    ) -> "Checkpoint":
        """Read a folder that `save_pretrained` wrote; the model is in evaluation mode."""
        folder = Path(folder)
        config = read_config(
            folder / CONFIG,
            FORMAT,
            dict.fromkeys(("encoder", "stem", "system", "recipe", "scores"), dict),
            usual=("recipe", "scores"),
            missing=f"{folder} is no checkpoint: it holds no {CONFIG}.",
            named="a Sureshot checkpoint",
        )
        try:
            encoder = build(EncoderNote, config["encoder"], "encoder")
            sizes = Sizes(encoder.dim, encoder.channels, tuple(encoder.experts.items()))
            stem = build(StemConfig, config["stem"], "stem")

            def fresh() -> Model:
                made = Stem(stem, sizes)
                return Model(made, load_system(config["system"], made.sizes))

            model = with_weights(fresh, folder / WEIGHTS, CONFIG)
        except ModelError:
            raise
        except SureshotError as error:
            raise ModelError(f"{folder / CONFIG} cannot be used. {error}") from None
        is_tuned = encoder.name == ENCODER
        return cls(
            model=model.to(device).eval(),
            encoder=encoder,
            system=config["system"],
            recipe=config["recipe"],
            scores=config["scores"],
            note=config["note"],
            tuned=partial(shutil.copytree, folder / ENCODER) if is_tuned else None,
        )

    def _write(self, folder: Path) -> None:
        noted = self.encoder
        if self.tuned is not None:
            self.tuned(folder / ENCODER)
            kept = encoders.load_encoder(str(folder / ENCODER), "cpu")
            noted = replace(noted, name=ENCODER, fingerprint=kept.fingerprint)
        config = {
            "format": FORMAT,
            "encoder": to_values(noted),
            "stem": to_values(self.model.stem.config),
            "system": dict(self.system),
            "recipe": dict(self.recipe),
            "scores": dict(self.scores),
            "note": self.note,
        }
        save_weights(self.model, folder / WEIGHTS)
        write_json(folder / CONFIG, config)
        write_text(folder / README, model_card(folder))


def read_config(
    path: Path,
    newest: int,
    kinds: Mapping[str, type],
    *,
    usual: Sequence[str] = (),
    missing: str,
    named: str,
) -> dict[str, Any]:
    """The settings in the folder of a model; ``usual`` tables are empty where they are left out."""
    try:
        config = read_json(path)
    except FileNotFoundError:
        raise ModelError(missing) from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read ({error}).") from None
    version = config.get("format") if isinstance(config, dict) else None
    # Before anything else is looked at: a newer format may hold other things.
    if isinstance(version, int) and version > newest:
        raise ModelError(
            f"{path.parent} has the format {version}; this Sureshot reads up to {newest}. "
            "Install the newest one."
        )
    if version == newest and type(version) is int:
        held = {**{name: {} for name in usual}, "note": "", **config}
        if all(isinstance(held.get(name), kind) for name, kind in kinds.items()):
            return held
    raise ModelError(f"{path} is not the config of {named}.")


def check_free(folder: Path) -> None:
    """Refuse to replace anything but an empty folder or a checkpoint."""
    if not folder.exists():
        return
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {folder.name}
    ours = {CONFIG, WEIGHTS, README, ENCODER, TRUST, BANK, MEASURED}
    if names and not (is_checkpoint(folder) and names <= ours):
        raise ModelError(f"{folder} holds something else; name a new folder.")


def record_recalls(folder: Path, report: RecallReport) -> None:
    """Keep the raw recalls of an evaluation in the folder of the model, and renew its card.

    Those of the same test with as many frames are replaced.
    """
    lines = []
    for line in report.raw:
        noted: dict[str, Any] = {"direction": line.direction, "queries": line.recall.n}
        for k in report.ks:
            ends = line.intervals.get(f"r{k}")
            interval = [] if ends is None else [ends.low, ends.high]
            noted[f"R@{k}"] = [getattr(line.recall, f"r{k}"), *interval]
        lines.append(noted | {"MdR": line.recall.median})
    new = {
        "test": report.title,
        "frames": report.setting.frames,
        "videos": report.setting.videos,
        "out_of_domain": report.out_of_domain,
        "resamples": report.resamples,
        "seed": report.seed,
        "recalls": lines,
    }
    same = (new["test"], new["frames"])
    others = [one for one in _recorded(folder) if (one["test"], one["frames"]) != same]
    write_json(folder / MEASURED, [*others, new])
    write_text(folder / README, model_card(folder))


def _recorded(folder: Path) -> list[dict[str, Any]]:
    try:
        found = read_json(folder / MEASURED)
        for one in found:
            _ = [_WAYS[line["direction"]] for line in one["recalls"]]
            _ = one["test"], one["frames"], one["out_of_domain"]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError):
        raise ModelError(
            f"{folder / MEASURED} cannot be read; delete it and record the evaluations again."
        ) from None
    return list(found)


def model_card(folder: Path, name: str = "FOLDER") -> str:
    """The card in Markdown, metadata for the hub at its top; commands call the model ``name``."""
    return "\n".join(_lines(folder, read_json(folder / CONFIG), name)) + "\n"


def _lines(folder: Path, config: Mapping[str, Any], name: str) -> Iterator[str]:
    system, noted = config["system"]["name"], config["encoder"]
    recipe = config.get("recipe", {})
    began = recipe.get("encoder", {}).get("name", ENCODER)
    encoder = without_folders(began if noted["name"] == ENCODER else noted["name"])
    own = f", which was trained with it and is in the folder `{ENCODER}`"
    yield f"---\nlibrary_name: sureshot\ntags: [video-text-retrieval, {system}]\n---"
    yield f"\n# {system} on {encoder}\n"
    yield (
        f"A text-to-video retrieval model of {_count(folder / WEIGHTS):,} parameters on the "
        f"encoder `{encoder}`{own if noted['name'] == ENCODER else ''} (fingerprint "
        f"{noted['fingerprint'][:16]}), trained with at most {noted['frames']} frames per video.\n"
    )
    yield f'```console\n$ sureshot index --model {name} ~/Videos && sureshot search "a goal"'
    yield f"$ sureshot evaluate {name} --data …\n```"
    yield "\n## Data\n"
    yield config.get("note") or "What it was trained on is not recorded."
    if scores := config.get("scores"):
        held, keep = scores.keys() != {"epoch"}, recipe.get("training", {}).get("keep")
        last = f"After the last epoch{', on the validation set' * held}"
        chosen = "On the validation set, by which its weights were chosen"
        yield f"\n{chosen if held and keep != 'last' else last}:\n"
        yield "| measured | |\n|---|---|"
        yield from (f"| {name} | {value:.4g} |" for name, value in scores.items())
    yield from _results(_recorded(folder), name)
    yield from _calibration(folder, name)
    yield f"\n## Recipe\n\nThe whole recipe is in `{CONFIG}`, under `recipe`."


def _results(recorded: list[dict[str, Any]], name: str) -> Iterator[str]:
    yield "\n## Results\n"
    if not recorded:
        yield f"None recorded; `sureshot evaluate {name} --data … --record` does."
        return
    yield "Raw scores, with 95 % intervals over videos."
    for one in recorded:
        frames = f", {one['frames']} frames per video" if one["frames"] else ""
        note = f"; {one['out_of_domain']}" if one["out_of_domain"] else ""
        yield f"\n**{one['test']}**{frames}{note}"
        heads = [key for key in one["recalls"][0] if key.startswith("R@")]
        yield f"\n| | queries | {' | '.join(heads)} | median rank |"
        yield "|---|---|" + "---|" * (len(heads) + 1)
        for line in one["recalls"]:
            cells = [_cell(*line[head]) for head in heads]
            row = [_WAYS[line["direction"]], str(line["queries"]), *cells, f"{line['MdR']:g}"]
            yield f"| {' | '.join(row)} |"


def _cell(value: float, low: float | None = None, high: float | None = None) -> str:
    return f"{value:.1f}" + ("" if low is None else f" [{low:.1f}, {high:.1f}]")


def _calibration(folder: Path, name: str) -> Iterator[str]:
    yield "\n## Calibration\n"
    if not (folder / TRUST).is_file():
        yield (
            f"None: searches show no percentages until `sureshot calibrate {name} --reference …` "
            f"has made a card."
        )
        return
    try:
        card = load_card(folder / TRUST)
    except SureshotError as error:
        yield f"`{TRUST}` cannot be used: {error}"
        return
    known = card.valid_for
    yield (
        f"`{TRUST}`, of {known.date}: learned from {known.queries} queries about {known.videos} "
        f"videos of {known.dataset}, in galleries of {known.smallest} to {known.largest} videos."
    )
    if (judged := card.quality) is not None:
        yield (
            f"On queries it was not fitted to, half of them without an answer, the first hit was "
            f"right for {judged.share:.0%}. A right one had the higher percentage than a wrong one "
            f"{judged.auroc:.0%} of the time [{judged.auroc_low:.0%}, {judged.auroc_high:.0%}]. "
            f"Percentages were off by {100 * judged.ece:.1f} points on average (perfect ones: "
            f"{100 * judged.ece_floor:.1f})."
        )


def _count(weights: Path) -> int:
    """Number of parameters in a file, from its header."""
    try:
        with safe_open(weights, framework="numpy") as file:
            shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{weights} cannot be read: {error}.") from None
    return sum(math.prod(shape) for shape in shapes)
