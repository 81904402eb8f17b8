"""The table about answers to questions: train, test once, remember, write the page."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sureshot.files import write_json, write_text
from sureshot.formats import read_json
from sureshot.metrics.answers import published_answers
from sureshot.research.listener import Notes
from sureshot.research.questions.evaluation import evaluate_answers
from sureshot.research.questions.recipe import AnswerRecipe
from sureshot.research.questions.run import train_answers
from sureshot.research.reproduction.bench import QUESTIONS, Bench
from sureshot.research.reproduction.code import ANSWERING, code_digest
from sureshot.research.reproduction.page import spread
from sureshot.research.reproduction.tables import Table, Variant


def answer_questions(
    table: Table,
    bench: Bench,
    folder: Path,
    seeds: int,
    notes: Notes,
    *,
    share: tuple[int, int] = (0, 1),
    cache: Path | None = None,
) -> list[Path]:
    """Train and test every row with every seed, and write NAME.md and NAME.json.

    Args:
        table: a table of this kind.
        bench: the data of a plan, which has questions.
        folder: gets the page, and ``runs``, in which finished runs are kept.
        seeds: runs of each row.
        notes: hears how far the work is.
        share: first run and step of those that are made; no page is written of a part of them.
        cache: folder of encoded features; None is one in the user's cache folder.

    Raises:
        SureshotError: the questions cannot be read, a setting is wrong, or a number is not finite.
    """
    kept = folder / "runs"
    kept.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[dict[str, Any]]] = {}
    first, step = share
    wanted = [(variant, seed) for seed in range(seeds) for variant in table.variants]
    for variant, seed in wanted[first::step]:
        notes.line(f"{table.name}: {variant.name}, seed {seed}")
        made = _run(variant, seed, bench, kept, cache, notes)
        rows.setdefault(variant.name, []).append(made)
    if step > 1:
        return []
    numbers = folder / f"{table.name}.json"
    write_json(numbers, rows)
    page = folder / f"{table.name}.md"
    write_text(page, "\n".join(_page(table, rows)))
    return [page, numbers]


def _run(
    variant: Variant, seed: int, bench: Bench, kept: Path, cache: Path | None, notes: Notes
) -> dict[str, Any]:
    """The report of one run as plain values, made now or before."""
    plan, name = bench.plan, QUESTIONS
    train, val, test = bench.questions()
    training = plan.settings("training", variant.system, name)
    encoder = bench.placed(plan.settings("encoder", variant.system, name))
    recipe = AnswerRecipe(
        train=train,
        val=val,
        encoder=encoder,
        stem=plan.settings("stem", variant.system, name),
        system=plan.system(variant.system, name),
        # Every question is asked in each epoch, as of `AnswerRecipe`.
        training=replace(training, captions="all", seed=seed),
    )
    parts = [
        recipe.to_dict(),
        bench.encoder(encoder).fingerprint,
        code_digest((str(variant.system["name"]),), starts=ANSWERING),
    ]
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]
    record, place = kept / f"{key}.json", kept / f"{key}.run"
    if not record.exists():
        fitted = train_answers(recipe, to=place, resume=True, cache=cache, listener=notes)
        found = evaluate_answers(
            fitted.folder,
            test.root,
            split=test.split,
            videos=test.videos,
            ids=test.ids,
            label=test.label,
            device=encoder.device,
            cache=cache,
            listener=notes,
        )
        write_json(record, found.to_dict())
        shutil.rmtree(place, ignore_errors=True)
    values: dict[str, Any] = read_json(record)
    return values


def _page(table: Table, rows: Mapping[str, list[dict[str, Any]]]) -> list[str]:
    first = next(iter(rows.values()))[0]
    lines = [
        f"# {table.title}",
        "",
        f"Tested once on {first['title']}; encoder `{first['encoder']}`, {first['frames']} frames, "
        f"{first['vocabulary']} answers known; a question whose answer is not among them counts as "
        "wrong. Mean and standard deviation over the seeds, in percent.",
        "",
        "| | accuracy | most frequent answer | paper (other protocol) |",
        "|---|---|---|---|",
    ]
    for variant in table.variants:
        made = rows[variant.name]
        right = spread([one["overall"]["value"] for one in made])
        constant = made[0]["constant"]["value"]
        lines.append(f"| {variant.name} | {right} | {constant:.1f} | {variant.paper} |")
    ours = {variant.method for variant in table.variants}
    others = [row for row in published_answers() if row.method not in ours]
    named = ", ".join(f"{row.method} {row.accuracy}" for row in others)
    lines += ["", f"Printed too, of systems that are not here: {named}.", ""]
    lines += [f"The paper's column is another protocol ({table.protocol}).", ""]
    return lines
