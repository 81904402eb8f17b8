"""Rows of the tables are what their labels, and the printed numbers next to them, say."""

import functools
import re
import zlib

import pytest
import torch

from sureshot.metrics.published import rows_of_table
from sureshot.models.losses.debiased import AMBIGUITY, FITS
from sureshot.models.systems.base import Sizes, System, load_system
from sureshot.research.reproduction.plan import (
    HOME,
    PlanData,
    Target,
    load_datasets,
    load_tables,
)
from sureshot.research.reproduction.runs import planned_runs
from sureshot.settings import build, to_values
from tests.models.systems.every import texts, videos
from tests.paths import ROOT

PUBLISHED = [f"plans/published-{paper}.toml" for paper in ("duq", "dvtr", "uatvr")]
OURS = [f"results/{name}.toml" for name in ("frame-subset", "flickr8k", "synthetic-frozen")]
SIZES = Sizes(16, 3)
PAIRS = 4
NAMES = {  # a method of the papers: the systems that rows of it train
    "CE": ("ce",),
    "HiT": ("hit",),
    "PCME": ("pcme",),
    "EMCL-Net": ("emcl",),
    "EMCL": ("emcl",),
    "X-Pool": ("xpool",),
    "T-Mass": ("tmass",),
    "CLIP2Video": ("clip2video",),
    "CE + DVTR": ("dvtr", "ce"),
    "DVTR + HiT": ("dvtr", "hit"),
    "DVTR + C2V": ("dvtr", "clip2video"),
    "UATVR": ("uatvr",),
    "DUQ": ("duq",),
}


@functools.cache
def rows(plan):
    """Table, data set, row and recipe of every run with seed 0 that a plan leads to."""
    data, found = PlanData(ROOT / plan), []
    for table in load_tables().values():
        if table.kind != "recalls":
            continue
        there = [(name, data.plan.data[name]) for name in table.data if name in data.plan.data]
        if not there and table.stand_in and data.plan.home is not None:
            there = [(HOME, data.plan.home)]
        for name, splits in there:
            made = planned_runs(table, Target(name, splits), 1, data)
            found += [(table, name, run.variant, run.recipe) for run in made]
    return found


def system_of(recipe) -> System:
    """The system of a recipe with weights that follow from their names."""
    made = load_system(recipe.system, SIZES)
    with torch.no_grad():
        for name, weight in made.named_parameters():
            draw = torch.Generator().manual_seed(zlib.crc32(name.encode()))
            if weight.requires_grad and weight.ndim > 1:
                weight.copy_(0.3 * torch.randn(weight.shape, generator=draw))
    return made.eval()


@functools.cache
def behaviour(system):
    """What a system computes and trains, whatever its settings are called."""
    made = system_of(type("Recipe", (), {"system": eval(system)}))
    words, films = texts(PAIRS), videos(PAIRS)
    found = [tuple(buffer.shape) for buffer in made.buffers()]
    for number in range(made.passes):
        made.begin_pass(number)
        codes = made.texts(words), made.videos(films)
        if made.reads_truth:
            fits = torch.ones(PAIRS, PAIRS, dtype=torch.bool)
            codes[0].update({FITS: fits, AMBIGUITY: torch.linspace(0, 1, PAIRS)})
        losses = made.losses(*codes, torch.Generator().manual_seed(5))
        found.append({k: (round(x.item(), 5), made.weights[k]) for k, x in losses.items()})
        found.append(sum(w.numel() for w in made.parameters() if w.requires_grad))
    found.append(made.similarity(*codes).sum().item())
    return repr(found)


def described(recipe):
    """A run, by what it computes in place of the settings of its system."""
    values = to_values(recipe)
    values["system"] = behaviour(repr(values["system"]))
    return values


@pytest.mark.parametrize("plan", [*PUBLISHED, *OURS])
def test_no_two_rows_of_a_table_are_one_run(plan):
    for table in dict.fromkeys(table.name for table, *_ in rows(plan)):
        seen = {}
        for one, name, row, recipe in rows(plan):
            if one.name == table and not row.post:
                key = name, repr(described(recipe))
                assert key not in seen, f"{table} on {name}: {row.name!r} is {seen[key]!r}"
                seen[key] = row.name


def stated(label):
    """The settings that a label states."""
    found = {}
    for name, value in re.findall(r"\b(K|C_v|C_t|F|margin|temperature)=([\d.]+)", label):
        found[name] = float(value)
    words = {
        "well_posed": ("mode", "well_posed"),
        "well-posed": ("mode", "well_posed"),
        "(paper)": ("mode", "paper"),
        "as printed": ("mode", "paper"),
        "UATVR as released": ("mode", "released"),
        "averaged": ("matching", "mil_nce_averaged"),
        "(MIL-NCE)": ("matching", "mil_nce"),
        "KL (UATVR)": ("matching", "mil_nce"),
        "soft contrastive": ("matching", "soft_contrastive"),
        "no DUA": ("matching", "none"),
        "sequential transformer": ("temporal", "transformer"),
        "mean of frames": ("temporal", "mean"),
        "equation 8": ("interaction", "mean"),
        "learned": ("temperature", None),
        "triplet": ("loss", "triplet"),
        "hardest negative": ("negatives", "hardest"),
        "without eta": ("uncertainty", "none"),
        "dealt": ("uncertainty", "shuffled"),
        "etas shuffled": ("uncertainty", "shuffled"),
        "known eta": ("uncertainty", "oracle"),
        "known spread": ("spread", "oracle"),
        ", PCME": ("uncertainty", "pcme"),
        "Softplus": ("evidence", "softplus"),
        "Exponential": ("evidence", "exp"),
        "ReLU": ("evidence", "relu"),
        "rule of the paper": ("distance", "boundary"),
        "one rule for all": ("distance", "mean"),
        "four layers": ("layers", 4),
        "B/32": ("encoder", "B32"),
        "B/16": ("encoder", "B16"),
    }
    found |= dict(words[word] for word in words if word in label)
    if label in (pooling := {"Mean": "mean", "MLP": "mlp", "SA": "self_attention"}):
        found["pooling"] = pooling[label]
    return {} if "control" in label and "dealt" not in label else found


def resolved(name, recipe, encoders):
    """A setting as it is in the system that a recipe trains."""
    made = load_system(recipe.system, SIZES)
    given = {key: value for key, value in recipe.system.items() if key != "name"}
    config = build(type(made).Config, given)
    if name in ("C_v", "C_t"):
        return config.learned[0 if name == "C_t" else 1]
    if name == "F":
        return recipe.encoder.frames
    if name == "encoder":
        return {label: known for known, label in encoders.items()}[recipe.encoder.name]
    if name == "matching":
        return config.matched_by
    if name == "temperature" and made.base.log_scale.requires_grad:
        return None
    if name == "temperature":
        return round(1 / made.scale.item(), 4)
    if name == "distance":
        return made.distance
    return getattr(config, "samples" if name == "K" else name)


@pytest.mark.parametrize("plan", [*PUBLISHED, *OURS])
def test_a_label_says_what_is_run(plan):
    encoders, stated_any = PlanData(ROOT / plan).plan.encoders, 0
    for table, data, row, recipe in rows(plan):
        for label in (row.name, *row.printed):
            if len(row.printed) > 1 and label != row.name:
                continue  # the same run for all that is printed
            for name, value in stated(label).items():
                found = resolved(name, recipe, encoders)
                assert found == value, f"{table.name} on {data}, {row.name!r}: {name} is {found}"
                stated_any += 1
    assert stated_any > 10


def numbers_of(method):
    """The recalls of all printed rows of CLIP4Clip that say how frames are pooled."""
    found = set()
    for table in load_tables().values():
        for row in rows_of_table(table.table):
            if row.method.lower().startswith(method):
                found.add((row.dataset, row.direction, row.r1, row.r5))
    return found


@pytest.mark.parametrize("plan", PUBLISHED)
def test_a_row_next_to_a_printed_number_is_of_that_base_and_encoder(plan):
    encoders, checked = PlanData(ROOT / plan).plan.encoders, 0
    sequential, mean = numbers_of("clip4clip-seq"), numbers_of("clip4clip-mean")
    for table, data, row, recipe in rows(plan):
        if not row.printed or data == HOME:
            continue
        every = [r for r in rows_of_table(table.table) if r.direction == "t2v"]
        every = [r for r in every if (r.dataset, r.split) == load_datasets()[data].printed]
        every = [r for r in every if (r.method, bool(r.post)) == (row.method, bool(row.post))]
        printed = [r for r in every if r.variant in row.printed]
        system = dict(recipe.system)
        if row.method in NAMES:
            base = system.get("base", {}).get("name")
            assert (system["name"], *([base] if base else [])) == NAMES[row.method], row.name
        else:
            assert system["name"] == "clip4clip"
        known = {label: name for name, label in encoders.items()}
        used = known.get(recipe.encoder.name)
        ours = [
            r
            for r in printed
            if r.encoder in ("", used) or (used, r.encoder) == ("experts", "none")
        ]
        assert ours or not printed, f"{table.name} on {data}, {row.name!r}: run on {used}"
        for one in ours:
            number = one.dataset, one.direction, one.r1, one.r5
            if system["name"] == "clip4clip":
                assert number not in (
                    sequential if system.get("temporal") != "transformer" else mean
                )
            checked += 1
    assert checked > 10
