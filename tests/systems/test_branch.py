"""A branch is an aggregation and a head, for one item at a time."""

import torch

from sureshot.layers.aggregation import LocalAggregation, PieAggregation
from sureshot.systems.branch import Branch
from tests.systems.every import WIDTH, texts


def test_a_branch_is_its_head_on_its_aggregation() -> None:
    torch.manual_seed(0)
    words = texts(3)
    for kind, layer in (("attention", LocalAggregation), ("pie", PieAggregation)):
        for literal in (False, True):
            branch = Branch(WIDTH, kind, literal=literal)
            assert type(branch.aggregate) is layer
            assert branch.head.literal == literal
            expected = branch.head(branch.aggregate(*words))
            found = branch(*words)
            assert torch.equal(found.mean, expected.mean)
            assert torch.equal(found.log_var, expected.log_var)
    assert Branch(WIDTH, "attention", literal=True).aggregate.residual == "double"
    assert Branch(WIDTH, "attention", literal=False).aggregate.residual == "single"


def test_a_text_without_a_word_is_its_sentence_alone() -> None:
    torch.manual_seed(0)
    branch, words = Branch(WIDTH, "attention", literal=False), texts(2)
    none = torch.zeros_like(words.mask)
    found = branch(words.sentence, words.words, none)
    bare = branch(words.sentence, words.words[:, :0], none[:, :0])
    torch.testing.assert_close(found.mean, bare.mean)
    assert found.mean.isfinite().all()
