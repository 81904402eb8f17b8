"""Our models in mteb, the benchmark of embeddings, as what it calls a searcher.

`load` gives one that `mteb.evaluate` takes. Its scores are percentages: the probability that a
video is right, as a search prints it. So mteb's own measure of confidence, ``nAUC_*_max``, which
leaves out the queries whose best score is low, measures how well our percentages know which answers
are right.

Videos are decoded and sampled as `sureshot evaluate` does, and kept in the same cache.
"""

import hashlib
import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Float64

from sureshot.datasets import Caption, Item, Split
from sureshot.errors import SureshotError, install_command, is_installed
from sureshot.files import file_digest
from sureshot.models.hub_bank import cards_of, home_of
from sureshot.models.huggingface import WEIGHTS
from sureshot.models.load import Scorer
from sureshot.models.load import load as load_model
from sureshot.paths import absolute_model, cache_dir, expand
from sureshot.progress import Notes, Progress, Silent
from sureshot.research.evaluation import encode, read_card
from sureshot.research.features import SplitFeatures, caption_features
from sureshot.research.scores import known_of, ranking
from sureshot.trust.card import Calibration
from sureshot.trust.signals import QueryContext

if TYPE_CHECKING:
    from mteb.models import ModelMeta

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class MtebSearcher:
    """A model as mteb searches with it; `load` makes one."""

    scorer: Scorer
    card: Calibration | None  # turns its scores into percentages; None gives them as they are
    prior: float | None = None
    cache: str | Path | None = None
    progress: Progress = field(default_factory=Silent)
    _features: SplitFeatures | None = field(default=None, init=False)

    @property
    def mteb_model_meta(self) -> "ModelMeta":
        """What mteb writes about the model, and keeps its results under."""
        from mteb.models import ModelMeta

        # Results are kept under these: another model, card or prior must not find them.
        scorer, how = self.scorer, {"scores": "similarities"}
        if self.card is not None:
            card = hashlib.sha256(self.card.to_json().encode()).hexdigest()[:12]
            how = {"scores": "percentages", "card": card, "prior": str(self.prior)}
        elif scorer.bank is not None:
            how["bank"] = scorer.bank.digest[:12]
        weights = (home_of(absolute_model(scorer.name)) or expand(scorer.name)) / WEIGHTS
        digest = file_digest(weights) if scorer.searchable is None else scorer.fingerprint
        known = {
            "name": f"sureshot/{Path(scorer.name).name}",
            "revision": digest[:40],
            "modalities": ["text", "video"],
            "framework": ["PyTorch"],
            "experiment_kwargs": how,
        }
        return ModelMeta.create_empty(known)

    def index(
        self, corpus: Any, *, task_metadata: Any, hf_split: str, hf_subset: str, **_: Any
    ) -> None:
        """Decode and encode the videos of a task; those that cannot be read are never found."""
        _check_task(task_metadata)
        ids = [str(name) for name in corpus["id"]]
        home = cache_dir() if self.cache is None else expand(self.cache)
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home) as folder:
            videos = _files(corpus, Path(folder))
            items = tuple(Item(name, path) for name, path in zip(ids, videos, strict=True))
            split = Split(
                dataset=task_metadata.name,
                name=hf_split,
                protocol=hf_subset,
                items=items,
                captions=(),
            )
            notes = Notes(self.progress)
            self._features = encode(split, self.scorer, notes, cache=self.cache)
        for line in notes.lines:
            _log.warning(line)

    def search(
        self,
        queries: Any,
        *,
        top_k: int,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        **_: Any,
    ) -> dict[str, dict[str, float]]:
        """The best ``top_k`` videos of each query, of those that ``top_ranked`` allows it."""
        features = self._features
        if features is None:
            raise SureshotError("Nothing has been indexed; call index before search.")
        captions = tuple(Caption(text, 0) for text in queries["text"])
        asked = replace(features.split, captions=captions)
        texts = caption_features(asked, self.scorer.encoder, cache=self.cache)
        scores = ranking(self.scorer, features, texts)
        about = known_of(self.scorer, texts)
        column = {item.id: place for place, item in enumerate(features.split.items)}
        found: dict[str, dict[str, float]] = {}
        for row, query in enumerate(map(str, queries["id"])):
            wanted = column if top_ranked is None else top_ranked.get(query, ())
            names = [name for name in wanted if name in column]
            own = scores[row : row + 1, [column[name] for name in names]]
            order, values = self._ranked(own, about.of([row])) if names else ([], [])
            best = zip(order[:top_k], values[:top_k], strict=True)
            found[query] = {names[place]: float(value) for place, value in best}
        return found

    def _ranked(
        self, scores: Float[np.ndarray, "1 videos"], about: QueryContext
    ) -> tuple[Sequence[int], Sequence[float]]:
        """The videos of one query, best first, and what mteb is given for them."""
        if self.card is None:
            order = np.argsort(-scores[0], kind="stable")
            return order.tolist(), scores[0, order].tolist()
        rows, chances = self.card.p_right(scores, about, results=None, prior=self.prior)
        return rows[0].tolist(), falling(chances[0]).tolist()


def load(
    name: str | Path,
    *,
    percentages: bool = True,
    card: str | Path | None = None,
    prior: float | None = None,
    device: str | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> MtebSearcher:
    """A model for `mteb.evaluate`.

    Args:
        name: folder of a checkpoint, or an encoder's name.
        percentages: whether scores are percentages; without, they are the similarities that a
            search ranks by, for a model without a calibration.
        card: file of the calibration; None is the one that a search takes.
        prior: share of the queries whose video is there; None is that of the card, one half. Every
            query of a benchmark has its video: 1 says so.
        cache: as of `sureshot.research.evaluation.evaluate`, and so is ``device``.
    """
    _require_mteb()
    scorer = load_model(name, device)
    scorer.check_experts(None)
    known = _card(scorer, card) if percentages else None
    return MtebSearcher(scorer, known, prior=prior, cache=cache, progress=progress or Silent())


def task_of(split: Split) -> Any:
    """A split as a task of mteb, for `mteb.evaluate` with any of its models.

    Each caption is a query, the video it is of the only right one. Parts of videos are refused.
    """
    _require_mteb()
    if any(item.start is not None or item.end is not None for item in split.items):
        raise SureshotError(
            f"{split.title()} has parts of videos, and mteb knows whole ones only. Cut them into "
            f"files, or measure with `sureshot evaluate`."
        )
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

    from datasets import Dataset, Features, Value, Video

    names = [str(number) for number in range(len(split.captions))]
    ids = [item.id for item in split.items]
    videos = [{"path": str(item.path.absolute()), "bytes": None} for item in split.items]
    data = {
        "corpus": Dataset.from_dict(
            {"id": ids, "video": videos},
            features=Features({"id": Value("string"), "video": Video()}),
        ),
        "queries": Dataset.from_dict({"id": names, "text": split.texts()}),
        "relevant_docs": {
            name: {ids[caption.video]: 1}
            for name, caption in zip(names, split.captions, strict=True)
        },
        "top_ranked": None,
    }
    digest = split.digest()

    class Task(AbsTaskRetrieval):  # type: ignore[misc]
        metadata = TaskMetadata(
            name=f"{split.dataset}-{digest[:8]}",
            description=split.title(),
            dataset={"path": f"local/{split.dataset}", "revision": digest},
            type="Any2AnyRetrieval",
            category="t2v",
            modalities=["text", "video"],
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="ndcg_at_10",
        )

        def load_data(self, *_: Any, **__: Any) -> None:
            self.dataset, self.data_loaded = {"default": {"test": data}}, True

    return Task()


def falling(chances: Float64[np.ndarray, " videos"]) -> Float[np.ndarray, " videos"]:
    """Percentages as scores that fall from each video to the next, so that ranks are kept.

    Of equal ones the later is the next smaller 32-bit number, which is how mteb's evaluator reads
    them.

    Examples:
        >>> scores = falling(np.array([0.5, 0.25, 0.25]))
        >>> bool((np.diff(scores) < 0).all()), float(scores[0])
        (True, 0.5)
    """
    scores = chances.astype(np.float32)
    below = np.float32(-1)
    for rank in range(1, len(scores)):
        scores[rank] = min(scores[rank], np.nextafter(scores[rank - 1], below))
    return scores


def _require_mteb() -> None:
    if not is_installed("mteb"):
        raise SureshotError(f"Benchmarks of mteb need the package mteb: {install_command('mteb')}")


def _check_task(task: Any) -> None:
    """Refuse a task that does not ask texts about videos."""
    from mteb.types import PromptType

    asked = set(task.get_modalities(PromptType.query))
    held = set(task.get_modalities(PromptType.document))
    if asked != {"text"} or "video" not in held or not held <= {"video", "audio"}:
        raise SureshotError(
            f"The task {task.name} looks for {' and '.join(sorted(held))} with "
            f"{' and '.join(sorted(asked))}; Sureshot looks for videos with texts. Take one of the "
            f"category t2v or t2va, such as MSVDT2VRetrieval."
        )


def _files(corpus: Any, folder: Path) -> Iterator[Path]:
    """The video of each document as a file: its own where it has one, else in the folder."""
    from datasets import Video

    if isinstance(corpus.features["video"], Video):
        corpus = corpus.cast_column("video", Video(decode=False))  # decoding would need torchcodec
    for row, video in enumerate(corpus["video"]):
        held: dict[str, Any] = {"path": video} if isinstance(video, str) else video
        path = Path(held["path"] or "")
        if held.get("bytes") is not None:
            path = folder / f"{row}{path.suffix or '.mp4'}"
            path.write_bytes(held["bytes"])
        yield path


def _card(scorer: Scorer, file: str | Path | None) -> Calibration:
    """The calibration that percentages come from."""
    if file is not None:
        return read_card(expand(file), scorer)
    for place in cards_of(absolute_model(scorer.name), scorer.fingerprint):
        if place.is_file():
            return read_card(place, scorer)
    raise SureshotError(
        f"{scorer.name} has no calibration, and so no percentages; make one with `sureshot "
        f"calibrate {scorer.name} --reference …`, or pass percentages=False for similarities."
    )
