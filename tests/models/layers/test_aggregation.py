"""Aggregation of tokens with a global feature, against DUQ's and UATVR's numbers."""

import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.models.layers.gaussian import LocalAggregation, PieAggregation, PieDeviation
from tests.models.layers.weights import blocks, load, sample, shake, tensor

# The last item has no real token but the global feature, which only LocalAggregation allows.
MASK = torch.tensor([[True] * 4, [True, False, True, False], [False] * 4])


def duq(told, part):
    mlp = {"agg": "agg.mlp", "prob": "prob.feat_mlp"}[part]
    width = len(told["inputs"]["tokens"][0][0])
    module = LocalAggregation(width, heads=told["config"]["heads"])
    load(
        module,
        told["weights"],
        blocks("block", f"{part}.attention.ResBlock")
        | {f"pool.worth.{i}": f"{part}.attention.feat_w.{i}" for i in (0, 2)}
        | {"mlp": mlp, "norm": f"{part}.ln"},
    )
    return module


def across_the_batch(module, tokens):
    """What the released code computes: its attention takes the first axis for the sequence."""
    swapped = tokens.transpose(0, 1)
    seen = module.block(swapped, torch.ones(swapped.shape[:2], dtype=torch.bool)).transpose(0, 1)
    full = torch.ones(tokens.shape[:2], dtype=torch.bool)
    return module.norm(module.mlp(module.pool(tokens + seen, full)))


def test_duq_but_for_attention_across_the_batch(golden):
    told = golden("duq_head_agg_prob")
    out, tokens = told["outputs"], tensor(told["inputs"]["tokens"])
    aggregate, deviation = duq(told, "agg"), duq(told, "prob")
    close = {"rtol": 1e-6, "atol": 1e-8}
    z = across_the_batch(aggregate, tokens)
    torch.testing.assert_close(z, tensor(out["z"]), **close)
    torch.testing.assert_close(torch.nn.functional.normalize(z, dim=-1), tensor(out["mu"]), **close)
    torch.testing.assert_close(across_the_batch(deviation, tokens), tensor(out["sigma"]), **close)
    changed = across_the_batch(aggregate, tensor(told["inputs"]["tokens_changed"]))
    torch.testing.assert_close(changed[0], tensor(out["z_changed_row0"]), **close)
    alone = torch.cat([across_the_batch(aggregate, item[None]) for item in tokens])
    torch.testing.assert_close(alone, tensor(out["z_single_items"]), **close)


def test_duq_free_of_the_defect_where_one_token_is_all_there_is(golden):
    # A sequence of one token, the global feature, attends to itself in either reading.
    told = golden("duq_head_agg_prob")
    module, first = duq(told, "agg"), tensor(told["inputs"]["tokens"])[:1, 0]
    found = module(first, first[:, None], torch.zeros(1, 1, dtype=torch.bool))
    torch.testing.assert_close(found, across_the_batch(module, first[:, None]))


def test_company_does_not_change_an_item(golden):
    told = golden("duq_head_agg_prob")
    module = duq(told, "agg")
    tokens, changed = (tensor(told["inputs"][name]) for name in ("tokens", "tokens_changed"))
    full = torch.ones_like(tokens[:, 1:, 0], dtype=torch.bool)
    one, other = (module(x[:, 0], x[:, 1:], full) for x in (tokens, changed))
    torch.testing.assert_close(one[0], other[0])
    assert not torch.allclose(one[1], other[1])


def local(residual="double"):
    module = LocalAggregation(6, 2, residual).eval()
    shake(module)
    return module


@pytest.mark.parametrize("residual", ["single", "double"])
def test_local_aggregation_agrees_with_one_item_at_a_time(residual):
    module, whole, tokens = local(residual), sample(3, 6), sample(3, 4, 6, seed=1)
    found = module(whole, tokens, MASK)
    for i in range(3):
        x = torch.cat([whole[i : i + 1], tokens[i][MASK[i]]])[None]
        seen = module.block(x, torch.ones(x.shape[:2], dtype=torch.bool))
        seen = seen[0] + x[0] if residual == "double" else seen[0]
        weights = module.pool.worth(seen).squeeze(-1).exp()
        pooled = sum(w / weights.sum() * token for w, token in zip(weights, seen, strict=True))
        torch.testing.assert_close(found[i], module.norm(module.mlp(pooled)))


def test_the_residuals_differ():
    module, whole, tokens = local("single"), sample(3, 6), sample(3, 4, 6, seed=1)
    single = module(whole, tokens, MASK)
    module.residual = "double"
    assert not torch.isclose(module(whole, tokens, MASK), single).all(1).any()


def test_heads_that_do_not_divide_are_refused():
    with pytest.raises(SureshotError, match="do not divide"):
        LocalAggregation(6, 4)


def pie(kind):
    module = kind(6, 5).eval()
    shake(module)
    return module


@pytest.mark.parametrize("module", [local(), pie(PieAggregation), pie(PieDeviation)])
def test_padding_has_no_influence(module):
    rows = 3 if isinstance(module, LocalAggregation) else 2
    whole, tokens, mask = sample(rows, 6), sample(rows, 4, 6, seed=1), MASK[:rows]
    found = module(whole, tokens, mask)
    assert found.isfinite().all()
    spoilt = tokens.masked_fill(~mask[..., None], torch.nan)
    assert torch.equal(module(whole, spoilt, mask), found)
    wide = torch.cat([spoilt, torch.full((rows, 2, 6), torch.inf)], dim=1)
    wide_mask = torch.cat([mask, torch.zeros(rows, 2, dtype=torch.bool)], dim=1)
    torch.testing.assert_close(module(whole, wide, wide_mask), found)


PIE = {
    "duq_c89_local_prob": {
        "inputs": "global_feat",
        "mean": {
            "pool.worth.0": "local_merge.attention.w_1",
            "pool.worth.2": "local_merge.attention.w_2",
            "linear": "local_merge.fc",
            "norm": "local_merge.layer_norm",
        },
        "deviation": {
            "pool.worth.0": "prob_embed.attention.w_1",
            "pool.worth.2": "prob_embed.attention.w_2",
            "linear": "prob_embed.fc",
            "linear_whole": "prob_embed.fc1",
        },
        "masked": ("out_with_pad_mask_last2", 2),
        "log_deviation": "sigma",
        "unit": "mu",
    },
    "uatvr_pie_heads": {
        "inputs": "pooled",
        "mean": {
            "pool.worth.0": "pie.attention.w_1",
            "pool.worth.2": "pie.attention.w_2",
            "linear": "pie.fc",
            "norm": "pie.layer_norm",
        },
        "deviation": {
            "pool.worth.0": "unc.attention.w_1",
            "pool.worth.2": "unc.attention.w_2",
            "linear": "unc.fc",
            "linear_whole": "unc.fc2",
        },
        "masked": ("out_masked_last", 1),
        "log_deviation": "logsigma",
        "unit": "mean",
    },
}


@pytest.mark.parametrize("name", PIE)
def test_pie(golden, name):
    told, here = golden(name), PIE[name]
    whole, tokens = tensor(told["inputs"][here["inputs"]]), tensor(told["inputs"]["tokens"])
    sizes = whole.shape[1], told["config"]["hidden"]
    mean, deviation = PieAggregation(*sizes), PieDeviation(*sizes)
    load(mean, told["weights"], here["mean"])
    load(deviation, told["weights"], here["deviation"])
    out, close = told["outputs"], {"rtol": 1e-6, "atol": 1e-8}
    full = torch.ones(tokens.shape[:2], dtype=torch.bool)
    torch.testing.assert_close(mean(whole, tokens, full), tensor(out["out"]), **close)
    torch.testing.assert_close(
        deviation(whole, tokens, full), tensor(out[here["log_deviation"]]), **close
    )
    output, last = here["masked"]
    masked = full.clone()
    masked[:, -last:] = False
    torch.testing.assert_close(mean(whole, tokens, masked), tensor(out[output]), **close)
