"""EMCL-Net, against its released steps in plain numpy loops."""

import numpy as np
import pytest
import torch

from sureshot.models.systems.base import rows
from sureshot.models.systems.emcl import Emcl, EmclConfig
from tests.models.systems.every import WIDTH, texts, videos


def emcl(**settings) -> Emcl:
    torch.manual_seed(0)
    return Emcl(EmclConfig(**{"temporal": "mean", "subspaces": 3, "scale": 5.0} | settings), WIDTH)


def softmax(values):
    odds = np.exp(values - values.max())
    return odds / odds.sum()


def slow_subspaces(items, start, rounds):
    """The released rounds, one number of a vector and one subspace at a time."""
    (count, dim), subspaces = items.shape, len(start)
    bases = np.tile(start, (count, 1))
    for _ in range(rounds):
        shares = np.stack([softmax(np.array([items[:, d] @ bases[:, k] for k in range(subspaces)]))
                           for d in range(dim)])  # fmt: skip
        for k in range(subspaces):
            weights = shares[:, k] / (1e-6 + shares[:, k].sum())
            base = np.array([items[n] @ weights for n in range(count)])
            bases[:, k] = base / (1e-6 + np.sqrt((base**2).sum()))
    added = [[sum(bases[n, k] * shares[d, k] for k in range(subspaces)) for d in range(dim)]
             for n in range(count)]  # fmt: skip
    return np.array(added), bases


def slow_loss(sentences, frames, mask, start, scale):
    """The released loss of a batch: frames weighed by inner products over 3, beta 3, 9 rounds."""
    batch = len(sentences)
    seen = np.zeros((batch, batch, sentences.shape[1]))
    for text in range(batch):
        for video in range(batch):
            real = frames[video][mask[video]]
            shares = softmax(real @ sentences[text] / 3)
            seen[text, video] = shares @ real
    items = np.concatenate([seen.reshape(batch * batch, -1), sentences])
    added, bases = slow_subspaces(items, start, 9)
    whole = items + 3 * added
    whole /= np.linalg.norm(whole, axis=1, keepdims=True)
    pairs, words = whole[: batch * batch].reshape(batch, batch, -1), whole[batch * batch :]
    logits = scale * np.array(
        [[words[t] @ pairs[t, v] for v in range(batch)] for t in range(batch)]
    )
    picked = [-np.log(softmax(logits[n])[n]) for n in range(batch)]
    picked += [-np.log(softmax(logits[:, n])[n]) for n in range(batch)]
    return np.mean(picked), bases


def test_the_released_loss_is_that_of_plain_loops():
    made = emcl(mode="released").double()
    words, films = texts(4), videos(4)
    given = [x.double() for x in (words.sentence, films.frames)]
    codes = {"sentence": given[0]}, {"frames": given[1], "mask": films.mask}
    start = torch.tensor([0.9, -0.4, 0.7], dtype=torch.float64)
    made.start.copy_(start)
    numbers = [x.numpy() for x in given]
    expected, bases = slow_loss(*numbers, films.mask.numpy(), start.numpy(), 5.0)
    found = made.losses(*codes)["similarity"]
    assert found.item() == pytest.approx(expected, rel=1e-7)  # the scale is 32-bit
    made.after_step()
    moved = 0.9 * start.numpy() + 0.1 * bases.mean(0)
    np.testing.assert_allclose(made.start.numpy(), moved, rtol=1e-9)
    # After one batch the model's own projector gives what that batch's subspaces added.
    items = numbers[0]
    seen = made._seen(*given, films.mask).flatten(0, 1).numpy()
    together = np.concatenate([seen, items])
    added, _ = slow_subspaces(together, start.numpy(), 9)
    np.testing.assert_allclose(together @ made.projector.numpy(), added, atol=1e-9)


def test_subspaces_of_one_sign_are_alike_as_released_and_differ_in_well_posed():
    for mode, alike in (("released", True), ("well_posed", False)):
        made = emcl(mode=mode, subspaces=8)
        draw = torch.Generator().manual_seed(1)
        items = torch.randn(40, WIDTH, generator=draw)
        made._added(items)
        start = made._found[0]
        if alike:
            signs = torch.sign(made.start)
            spread = [start[signs == sign].std().item() for sign in (-1, 1)]
            assert max(spread) < 1e-3 and 1 < (signs > 0).sum() < 7
        else:
            assert torch.cdist(start.T, start.T).fill_diagonal_(9).min() > 1e-3


def test_numbers_that_rise_and_fall_together_share_a_subspace():
    draw = torch.Generator().manual_seed(0)
    groups = torch.arange(WIDTH) % 3
    items = torch.randn(60, 3, generator=draw)[:, groups] + 0.01 * torch.randn(
        60, WIDTH, generator=draw
    )
    shares, projector = emcl(rounds=20)._well_posed(items)
    best = shares.argmax(1)
    assert all(len(set(best[groups == group].tolist())) == 1 for group in range(3))
    assert len(set(best.tolist())) == 3
    means = torch.stack([items[:, groups == group].mean(1) for group in range(3)], 1)[:, groups]
    torch.testing.assert_close(items @ projector, means, atol=0.05, rtol=0)


@pytest.mark.parametrize("mode", ["well_posed", "released"])
def test_a_batch_counts_once_its_step_is_taken_and_a_score_needs_no_batch(mode):
    made = emcl(mode=mode).train()
    codes = made.texts(texts(4)), made.videos(videos(4))
    before = {name: value.clone() for name, value in made.named_buffers()}
    made.losses(*codes)
    assert all(torch.equal(before[name], value) for name, value in made.named_buffers())
    made.after_step()
    assert made.projector.abs().sum() > 0 and int(made.batches) == 1
    made.eval()
    codes = made.texts(texts(4)), made.videos(videos(4))
    whole = made.similarity(*codes)
    alone = made.similarity(rows(codes[0], [2]), rows(codes[1], [1]))
    torch.testing.assert_close(alone[0, 0], whole[2, 1])
    seen = (made.text_vectors(codes[0]) * made.seen_vectors(*codes)).sum(-1)
    torch.testing.assert_close(seen, whole.diagonal(), atol=1e-5, rtol=0)
