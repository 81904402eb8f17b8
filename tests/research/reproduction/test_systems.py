"""The table of all systems names all of them, each base with and without DVTR."""

from sureshot.models.model import Stem, StemConfig
from sureshot.models.systems.load import known_systems, load_system
from sureshot.models.tokens import Sizes
from sureshot.research.reproduction.systems import SIZES, TABLE


def size(variant):
    """Weights at the size of the frame subset's features, in the plan's stem or the row's own."""
    stem = Stem(StemConfig("linear", variant.width or 128), Sizes(384, 1408))
    made = load_system(variant.system, stem.sizes)
    parts = [*stem.parameters(), *made.parameters()]
    return sum(part.numel() for part in parts if part.requires_grad)


def test_every_system_is_in_it():
    assert {v.system["name"] for v in TABLE.variants} == set(known_systems())


def test_every_base_is_there_alone_too():
    rows = {v.name: v.system for v in TABLE.variants}
    bases = [n for n in rows if n.startswith("DVTR + ") and not n.endswith("without uncertainty")]
    assert len(bases) == 5
    for name in bases:
        assert rows[name]["base"] == rows[name.removeprefix("DVTR + ")]


def test_there_is_a_clip4clip_at_least_as_large_as_every_system():
    largest = max(size(v) for v in TABLE.variants if v.width is None)
    (top,) = [v for v in TABLE.variants if v.width == max(SIZES)]
    assert size(top) >= largest
