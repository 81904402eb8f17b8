"""A model that answers questions, in a folder.

``answers.json`` holds the vocabulary and everything else needed to build the head again,
``head.safetensors`` its weights, ``README.md`` is for people. ``retrieval`` is the checkpoint of
the model that the head reads, with the weights it has now: it indexes and searches as any other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from sureshot.errors import ModelError, SureshotError
from sureshot.files import replace_file, write_json, write_text
from sureshot.models.checkpoint import Checkpoint, read_config
from sureshot.models.weights import with_weights
from sureshot.research.questions.head import AnswerHead, AnswerModel, HeadConfig, head_of
from sureshot.settings import build, to_values

FORMAT = 1
CONFIG, WEIGHTS, CARD, RETRIEVAL = "answers.json", "head.safetensors", "README.md", "retrieval"


@dataclass(frozen=True, slots=True)
class AnswerCheckpoint:
    """A model and what is known of it.

    Attributes:
        retrieval: what the head reads.
        head: answer head, as wide as the vectors of its system.
        config: settings of the head.
        answers: the vocabulary, in the order of the head's outputs.
        often: how many training questions had each of them.
        recipe: the whole recipe it was trained by.
        scores: what was measured, by name; never on test data while choosing.
        note: sentences for the card: data, limits.
    """

    retrieval: Checkpoint
    head: AnswerHead
    config: HeadConfig
    answers: tuple[str, ...]
    often: tuple[int, ...]
    recipe: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    def model(self) -> AnswerModel:
        """The model in evaluation mode."""
        made = AnswerModel(self.retrieval.model, self.head)
        made.eval()
        return made

    def save(self, folder: Path) -> None:
        """Write into a folder, which is made or is empty.

        Raises:
            ModelError: it cannot be written.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.retrieval.save_pretrained(folder / RETRIEVAL)
            weights = {name: w.detach().cpu() for name, w in self.head.state_dict().items()}
            with replace_file(folder / WEIGHTS) as fresh:  # also for its permissions
                save_file(weights, fresh)
            write_json(folder / CONFIG, self._config())
            write_text(folder / CARD, self._card())
        except (OSError, SafetensorError) as error:
            raise ModelError(f"The model {folder} cannot be written: {error}") from None

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device = "cpu") -> "AnswerCheckpoint":
        """Read a folder that `save` wrote.

        Raises:
            ModelError: it holds no such model, was written by a newer Sureshot, or is damaged.
        """
        folder = Path(folder)
        config = read_config(
            folder / CONFIG,
            FORMAT,
            {"head": dict, "answers": list, "often": list, "recipe": dict, "scores": dict},
            missing=f"{folder} holds no model that answers questions: there is no {CONFIG} in it. "
            "Name the folder model of a run of sureshot answer train.",
            named="a model that answers questions",
        )
        retrieval = Checkpoint.from_pretrained(folder / RETRIEVAL, device)
        answers, often = tuple(config["answers"]), tuple(config["often"])
        whole = all(isinstance(number, int) for number in often) and len(often) == len(answers)
        if not whole or not all(isinstance(answer, str) for answer in answers):
            raise ModelError(
                f"{folder / CONFIG} is damaged: answers must be texts, and often a number of each. "
                "Copy or train it again."
            )
        try:
            settings = build(HeadConfig, config["head"], "head")
        except SureshotError as error:
            raise ModelError(f"{folder / CONFIG} cannot be used. {error}") from None
        make = partial(head_of, retrieval.model, len(answers), settings)
        head = with_weights(make, folder / WEIGHTS, CONFIG)
        return cls(
            retrieval=retrieval,
            head=head.to(device).eval(),
            config=settings,
            answers=answers,
            often=often,
            recipe=config["recipe"],
            scores=config["scores"],
            note=config["note"],
        )

    def _config(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "head": to_values(self.config),
            "answers": list(self.answers),
            "often": list(self.often),
            "recipe": dict(self.recipe),
            "scores": dict(self.scores),
            "note": self.note,
        }

    def _card(self) -> str:
        measured = "\n".join(f"| {name} | {value:.4g} |" for name, value in self.scores.items())
        some = ", ".join(self.answers[:5])
        return f"""# Answers to questions about videos

Answers with one of {len(self.answers)} words ({some}, …) from the features of
{self.retrieval.system["name"]} on the encoder {self.retrieval.encoder_name}, which lies in
`{RETRIEVAL}`. Use it with `sureshot answer ask FOLDER VIDEO QUESTION`.

{self.note}

| measured | |
|---|---|
{measured}

The recipe it was trained by stands in `{CONFIG}`.
"""
