"""CLIP and SigLIP, against transformers itself on small networks with random weights."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordLevel
from transformers import (
    CLIPConfig,
    CLIPImageProcessorPil,
    CLIPModel,
    CLIPTokenizer,
    PreTrainedTokenizerFast,
    SiglipConfig,
    SiglipImageProcessorPil,
    SiglipModel,
)

import sureshot.models.encoders.clip as module
from sureshot.errors import ModelError
from sureshot.models.encoders import Encoder, load_encoder
from sureshot.models.encoders.clip import ClipEncoder
from tests.paths import SOURCE

SIDE, LONGEST = 32, 16
FAMILIES = ["clip", "siglip", "clip-2021"]
TEXTS = ["a dog catches a frisbee", "A DOG", "two red cars, one blue bus!", "x " * 40]
TOLERANCE = 1e-5


@dataclass
class Checkpoint:
    """A folder as a user has it, and the library's own objects as the reference."""

    folder: Path
    model: Any
    tokenizer: Any
    processor: Any
    padding: str

    def tokens(self, texts):
        return self.tokenizer(
            texts, padding=self.padding, max_length=LONGEST, truncation=True, return_tensors="pt"
        )

    def pixels(self, frames):
        given = {"return_tensors": "pt", "input_data_format": "channels_last"}
        return self.processor([*frames], **given)["pixel_values"]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """Digests are not remembered outside of the test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module", params=FAMILIES)
def checkpoint(request, tmp_path_factory) -> Checkpoint:
    return {"clip": clip, "siglip": siglip, "clip-2021": clip_of_2021}[request.param](
        tmp_path_factory.mktemp(request.param)
    )


@pytest.fixture(scope="module")
def encoder(checkpoint) -> ClipEncoder:
    return ClipEncoder.load(str(checkpoint.folder), "cpu")


@pytest.fixture
def broken(checkpoint, tmp_path) -> Path:
    """A copy to break."""
    return shutil.copytree(checkpoint.folder, tmp_path / "broken")


def network(hidden, inner=40, layers=2):
    return {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
    }


def saved(folder, model, tokenizer, processor, padding) -> Checkpoint:
    torch.manual_seed(0)
    for weight in model.parameters():  # the library's initial weights tell inputs hardly apart
        torch.nn.init.normal_(weight, std=0.4)
    for part in (model, tokenizer, processor):
        part.save_pretrained(folder)
    return Checkpoint(folder, model.eval(), tokenizer, processor, padding)


def clip(folder, end=None, *, shared=20, inner=40, layers=2, longest=LONGEST) -> Checkpoint:
    """A small CLIP; with ``shared=32, inner=128`` its text network is laid out as in OpenAI's.

    ``layers`` and ``longest`` are the blocks and the tokens of that network.
    """
    letters = pre_tokenizers.ByteLevel.alphabet()
    pieces = ["<|startoftext|>", *sorted(letters), *sorted(f"{c}</w>" for c in letters)]
    vocab = {piece: i for i, piece in enumerate([*pieces, "<|endoftext|>"])}
    special = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": end or len(vocab) - 1}
    text = {"vocab_size": len(vocab), "max_position_embeddings": longest, **special}
    config = CLIPConfig(
        text_config=network(32, inner, layers) | text,
        vision_config=network(24) | {"image_size": SIDE, "patch_size": 8},
        projection_dim=shared,
    )
    processor = CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size=SIDE)
    return saved(folder, CLIPModel(config), CLIPTokenizer(vocab, []), processor, "longest")


def clip_of_2021(folder) -> Checkpoint:
    """As openai/clip-vit-base-patch32 is: end token 2 in the config, plain numbers for sizes."""
    made = clip(folder, end=2)
    numbers = {"size": SIDE, "crop_size": SIDE, "do_resize": True, "resample": 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(numbers))
    return made


def siglip(folder) -> Checkpoint:
    words = ["</s>", "<unk>", "a", "dog", "catches", "frisbee", "two", "red", "cars", "blue", "bus"]
    inner = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    inner.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace("!", "")])
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 0)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        eos_token="</s>",
        pad_token="</s>",
        unk_token="<unk>",
        model_max_length=LONGEST,
    )
    text = {"vocab_size": len(words), "max_position_embeddings": LONGEST}
    config = SiglipConfig(
        text_config=network(24) | text,
        vision_config=network(24) | {"image_size": SIDE, "patch_size": 8},
    )
    processor = SiglipImageProcessorPil(size={"height": SIDE, "width": SIDE})
    return saved(folder, SiglipModel(config), tokenizer, processor, "max_length")


def frames(n=3, height=45, width=70):
    return np.random.default_rng(n).integers(0, 256, (n, height, width, 3), dtype=np.uint8)


def unit(vectors):
    return vectors / vectors.norm(dim=-1, keepdim=True)


def close(found, expected, atol=TOLERANCE):
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.asarray(expected), rtol=TOLERANCE, atol=atol)


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))


def one_sentence(caught):
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


@torch.inference_mode()
def test_sentences_are_the_text_features_of_the_library(checkpoint, encoder):
    tokens = checkpoint.tokens(TEXTS)
    features = checkpoint.model.get_text_features(**without_mask(checkpoint, tokens))
    found = encoder.encode_texts(TEXTS).sentence
    close(found, unit(features.pooler_output))
    similar = found @ found.T - np.eye(len(TEXTS))
    assert similar[0, 2:].max() < 0.999  # the weights do tell texts apart
    close(found[1:2], encoder.encode_texts(["a dog"]).sentence)  # in any case


def without_mask(checkpoint, tokens):
    """SigLIP was trained without one; its own tokenizer gives none."""
    names = ["input_ids"] if checkpoint.padding == "max_length" else ["input_ids", "attention_mask"]
    return {name: tokens[name] for name in names}


@torch.inference_mode()
def test_words_are_the_projected_states_of_real_tokens(checkpoint, encoder):
    tokens = checkpoint.tokens(TEXTS)
    model = checkpoint.model
    states = model.text_model(**without_mask(checkpoint, tokens)).last_hidden_state
    project = getattr(model, "text_projection", None) or model.text_model.head
    expected, real = project(states).numpy(), tokens["attention_mask"].numpy().astype(bool)
    found = encoder.encode_texts(TEXTS)
    np.testing.assert_array_equal(found.mask, real[:, : found.mask.shape[1]])
    assert found.mask.any(0).all()  # no column of padding only
    close(found.words[found.mask], expected[real])
    assert not found.words[~found.mask].any()


def test_a_text_alone_equals_it_in_a_batch(encoder, monkeypatch):
    whole = encoder.encode_texts(TEXTS)
    for row, text in enumerate(TEXTS):
        alone = encoder.encode_texts([text])
        close(alone.sentence[0], whole.sentence[row])
        close(alone.words[0][alone.mask[0]], whole.words[row][whole.mask[row]], 5e-5)
        assert alone.truncated[0] == whole.truncated[row]
    monkeypatch.setattr(module, "_TEXTS", 3)
    close(encoder.encode_texts(TEXTS).sentence, whole.sentence)


@torch.inference_mode()
def test_frames_are_the_image_features_of_the_library(checkpoint, encoder):
    pixels = checkpoint.pixels(frames())
    features = checkpoint.model.get_image_features(pixel_values=pixels)
    found = encoder.encode_frames(pixels.numpy())
    close(found.frames, features.pooler_output)
    lengths = np.linalg.norm(found.frames, axis=1)
    assert (np.abs(lengths - 1) > 0.1).all()  # as they come, not at unit length


@torch.inference_mode()
def test_patches_and_backbone_are_those_of_the_library(checkpoint, encoder):
    pixels, model = checkpoint.pixels(frames()), checkpoint.model
    seen = model.vision_model(pixel_values=pixels)
    found = encoder.encode_frames(pixels.numpy())
    close(found.backbone, seen.pooler_output)
    if isinstance(model, SiglipModel):
        close(found.patches, seen.last_hidden_state)
    else:
        tokens = model.vision_model.post_layernorm(seen.last_hidden_state)
        projected = model.visual_projection(tokens)
        close(found.patches, projected[:, 1:])
        close(found.frames, projected[:, 0])  # a patch and a frame share one space
    assert found.patches.shape == (3, (SIDE // 8) ** 2, encoder.dim)
    assert found.backbone.shape == (3, encoder.channels)


def test_many_frames_equal_few(encoder, monkeypatch):
    prepared = encoder.prepare(frames(7))
    whole = encoder.encode_frames(prepared)
    monkeypatch.setattr(module, "_FRAMES", 3)
    parts = encoder.encode_frames(prepared)
    alone = encoder.encode_frames(prepared[4:5])
    for name in ("frames", "patches", "backbone"):
        close(getattr(parts, name), getattr(whole, name))
        close(getattr(alone, name)[0], getattr(whole, name)[4])


def test_no_frames_give_no_features(encoder):
    found = encoder.encode_frames(encoder.prepare(frames(1)[:0]))
    assert found.frames.shape == (0, encoder.dim)
    assert found.patches.shape == (0, (SIDE // 8) ** 2, encoder.dim)
    assert found.backbone.shape == (0, encoder.channels)


def test_what_an_encoder_says_of_itself(checkpoint, encoder):
    assert encoder.name == str(checkpoint.folder)
    small = encoder.frame_size(np.zeros((90, 160, 3), np.uint8))
    assert min(small.shape[:2]) == SIDE
    assert encoder.channels == 24
    assert encoder.dim == (24 if isinstance(checkpoint.model, SiglipModel) else 20)
    assert encoder.device == "cpu"
    assert encoder.latin_only
    by_name: Encoder = load_encoder(encoder.name, "cpu")
    assert isinstance(by_name, ClipEncoder)
    assert by_name.fingerprint == encoder.fingerprint


def test_a_large_vocabulary_is_that_of_many_languages(broken):
    edit(broken / "config.json", lambda c: c["text_config"].update(vocab_size=250_000))
    assert not ClipEncoder.load(str(broken), "cpu").latin_only


def test_nothing_is_written_to_the_terminal(checkpoint, capfd):
    fresh = ClipEncoder.load(str(checkpoint.folder), "cpu")
    fresh.encode_texts(["a dog"])
    assert capfd.readouterr() == ("", "")


def test_half_precision_is_read_in_single(checkpoint, encoder, broken):
    path = broken / "model.safetensors"
    half = {name: weight.half() for name, weight in load_file(path).items()}
    save_file(half, path, metadata={"format": "pt"})
    edit(broken / "config.json", lambda c: c.update(dtype="float16"))
    found = ClipEncoder.load(str(broken), "cpu").encode_texts(TEXTS).sentence
    close(found, encoder.encode_texts(TEXTS).sentence, 2e-2)


def test_importing_the_module_loads_neither_torch_nor_transformers():
    source = str(SOURCE)
    code = (
        f"import sys; sys.path.insert(0, {source!r}); import sureshot.models.encoders.clip; "
        "print({'torch', 'transformers', 'huggingface_hub'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


def drop(name):
    return lambda folder: (folder / name).unlink()


def config(change):
    return lambda folder: edit(folder / "config.json", change)


def vision(**settings):
    return config(lambda c: c["vision_config"].update(settings))


def truncate(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize(
    ("break_it", "reason"),
    [
        (drop("config.json"), r"config\.json is missing"),
        (drop("tokenizer.json"), r"tokenizer\.json is missing"),
        (drop("model.safetensors"), r"model\.safetensors is missing"),
        (truncate, r"model\.safetensors cannot be read"),
        (config(lambda c: c.update(model_type="siglip2")), "NaFlex.*fixed-size SigLIP2"),
        (config(lambda c: c.update(model_type="bert")), "model type is bert"),
        (config(lambda c: c.pop("model_type")), "model type is None"),
        (vision(hidden_size="large"), r"config\.json is not sound .*hidden_size"),
        (config(lambda c: c.update(vision_config=3)), r"config\.json is not sound"),
        (vision(image_size=[32, 64]), "not square"),
        (vision(image_size=40), "squares of 40 pixels"),
    ],
)
def test_a_broken_folder_is_refused_at_once(broken, break_it, reason):
    break_it(broken)
    with pytest.raises(ModelError, match=reason) as caught:
        ClipEncoder.load(str(broken), "cpu")
    assert str(broken) in one_sentence(caught)


@pytest.mark.parametrize("what", ["missing", "other size"])
def test_weights_that_do_not_fit_are_refused_at_the_first_use(broken, what):
    path = broken / "model.safetensors"
    weights = load_file(path)
    name = "vision_model.post_layernorm.weight"
    del weights[name]
    if what == "other size":
        weights[name] = torch.zeros(3)
    save_file(weights, path, metadata={"format": "pt"})
    encoder = ClipEncoder.load(str(broken), "cpu")
    with pytest.raises(ModelError, match=rf"missing or of another size.*\({name}\)") as caught:
        encoder.encode_texts(["a dog"])
    assert str(broken) in one_sentence(caught)


def test_a_network_that_cannot_be_built_is_refused_at_the_first_use(broken):
    edit(broken / "config.json", lambda c: c["text_config"].update(hidden_act="soft"))
    encoder = ClipEncoder.load(str(broken), "cpu")
    with pytest.raises(ModelError, match=r"cannot be read \(.*soft") as caught:
        encoder.encode_texts(["a dog"])
    one_sentence(caught)


def test_a_siglip_without_its_pooling_is_refused(checkpoint, broken):
    if not isinstance(checkpoint.model, SiglipModel):
        pytest.skip("CLIP pools by its first token")
    edit(broken / "config.json", lambda c: c["vision_config"].update(vision_use_head=False))
    with pytest.raises(ModelError, match="share no space"):
        ClipEncoder.load(str(broken), "cpu")
