"""Settings of a training run: what sees texts and frames, and how weights are fitted."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from sureshot.errors import SureshotError
from sureshot.media.sampling_rule import Sampling, SamplingKind
from sureshot.research.training.augment import Augment
from sureshot.research.training.batches import Captions
from sureshot.research.training.schedule import Optimizer
from sureshot.research.training.step import Precision
from sureshot.settings import Ranged, Within


@dataclass(frozen=True, slots=True)
class EncoderRecipe(Ranged):
    """What sees texts and frames.

    Attributes:
        name: what `sureshot.models.encoders.load_encoder` takes.
        frames: frames sampled from each video, 1 to 64.
        sampling: which frames: ``uniform``, ``spread``, ``segments`` or ``head``, see
            `sureshot.media.sampling_rule.Sampling`.
        fps: frames a second that are looked at to begin with; None looks at all.
        words: tokens of a text that are read, special ones included; None reads as many as the
            encoder can. Only an encoder that is trained too can be held to fewer.
        device: torch device; None takes a GPU where there is one.
        tuned: whether the encoder is trained too, end to end; only CLIP and SigLIP can be.
    """

    at: ClassVar[str] = "encoder"

    name: str = "bundled"
    frames: Annotated[int, Within(1, 64)] = 12
    sampling: SamplingKind = "uniform"
    fps: Annotated[float | None, Within(0.001, 1000.0)] = None
    words: Annotated[int | None, Within(3, 1000)] = None
    device: str | None = None
    tuned: bool = False

    def __post_init__(self) -> None:
        """Refuse values out of range and what does not go together."""
        Ranged.__post_init__(self)
        if self.rule.is_drawn:
            raise SureshotError(
                f'Setting encoder.sampling is "{self.sampling}", which takes other frames each '
                f'time. What is tested must not change: set it to "spread" or "segments", and '
                f'training.sampling to "{self.sampling}".'
            )
        if self.words is not None and not self.tuned:
            raise SureshotError(
                "Setting encoder.words goes with an encoder that is trained too; set encoder.tuned "
                "to true, or leave words out."
            )

    @property
    def rule(self) -> Sampling:
        """Which frames of a video are looked at."""
        return Sampling(self.sampling, self.fps)


@dataclass(frozen=True, slots=True)
class TrainingConfig(Ranged):
    """How weights are fitted.

    Attributes:
        epochs: passes over the videos.
        batch: most pairs of a batch, over all processes.
        captions: ``one`` random caption of each video an epoch, or ``all`` of them; None is all
            with an encoder that is trained too, as in the papers, and one otherwise.
        rate: learning rate of stem and system.
        encoder_rate: learning rate of a tuned encoder.
        optimizer: ``adamw``; ``bert_adam`` as in the codes of CLIP4Clip, UATVR and DUQ, or
            ``hugging_face`` as in those of X-Pool and T-MASS, each with its own schedule.
        weight_decay: decay of weights; the optimiser decides of which.
        warmup: share of all steps in which the rate rises.
        clip: longest gradient; 0 leaves all as they are.
        micro_batch: pairs embedded with a graph at once, for a batch that does not fit into memory.
        precision: number format of the networks in training; weights are 32-bit. ``float16`` is
            that of a tuned encoder alone, as in the papers' codes, with gradients scaled to fit it.
        save_every: steps after which the run can go on where it is stopped; 0 is a whole epoch.
        seed: number that first weights, batches and noise come from.
        keep: the checkpoint with the ``best`` score on the validation set or the ``last`` one;
            None is the best where there is a validation set.
        metric: the score: sum of R@1, 5 and 10 both ways, or R@1 from text to video.
        workers: threads that decode videos for a tuned encoder.
        sampling: which frames a tuned encoder is trained on, such as ``random`` or ``phase``; None
            is those of ``encoder.sampling``.
        augment: how frames are changed for a tuned encoder: not at all; ``crop_flip``, one random
            crop and flip a video (X-Pool, T-MASS); or ``rand_augment``, four random changes a video
            (DUQ).
        keep_frames: whether the sampled frames of a tuned encoder are kept as JPEG in the folder of
            the run, so that each video is decoded once and not in every epoch.
    """

    at: ClassVar[str] = "training"

    epochs: Annotated[int, Within(1, 100_000)] = 10
    batch: Annotated[int, Within(2, 1_000_000)] = 128
    captions: Captions | None = None
    rate: Annotated[float, Within(0.0, 10.0)] = 1e-4
    encoder_rate: Annotated[float, Within(0.0, 10.0)] = 1e-7
    optimizer: Optimizer = "adamw"
    weight_decay: Annotated[float, Within(0.0, 10.0)] = 0.2
    warmup: Annotated[float, Within(0.0, 1.0)] = 0.1
    clip: Annotated[float, Within(0.0, 1e9)] = 1.0
    micro_batch: Annotated[int | None, Within(1, 1_000_000)] = None
    precision: Precision = "float32"
    save_every: Annotated[int, Within(0, 1_000_000_000)] = 0
    seed: Annotated[int, Within(0, 2**63 - 1)] = 0
    keep: Literal["best", "last"] | None = None
    metric: Literal["rsum", "r1"] = "rsum"
    workers: Annotated[int, Within(1, 256)] = 4
    sampling: SamplingKind | None = None
    augment: Augment = "none"
    keep_frames: bool = False

    def __post_init__(self) -> None:
        """Refuse values out of range and what does not go together."""
        Ranged.__post_init__(self)
        drawn = self.sampling is not None and Sampling(self.sampling).is_drawn
        if self.keep_frames and (drawn or self.augment != "none"):
            change = f'sampling = "{self.sampling}"' if drawn else f'augment = "{self.augment}"'
            raise SureshotError(
                f"Setting training.keep_frames keeps the frames of an epoch for all others, and "
                f"{change} makes them differ; leave one of the two out."
            )

    def beside(self, encoder: EncoderRecipe) -> "TrainingConfig":
        """These settings with what the encoder decides filled in.

        Args:
            encoder: what is trained with, or frozen.

        Raises:
            SureshotError: a setting is about pixels, and a frozen encoder shows features.
        """
        plain = TrainingConfig()
        for name in () if encoder.tuned else ("sampling", "augment", "keep_frames"):
            if getattr(self, name) != getattr(plain, name):
                raise SureshotError(
                    f"Setting training.{name} is about pixels, and the encoder is frozen: it is "
                    "trained on features that are encoded once. Set encoder.tuned to true, or "
                    f"leave {name} out."
                )
        if self.precision == "float16" and not encoder.tuned:
            raise SureshotError(
                'Setting training.precision is "float16", which is for an encoder that is trained '
                'too; set it to "bfloat16" or "float32", or encoder.tuned to true.'
            )
        usual: Captions = "all" if encoder.tuned else "one"
        return replace(self, captions=self.captions or usual)
