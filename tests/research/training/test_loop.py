"""A run: learns, is stopped, goes on bit by bit the same, and never spoils what is good."""

import dataclasses
import json
import math
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from torch import nn

from sureshot.errors import SureshotError
from sureshot.research.training.data import plan
from sureshot.research.training.loop import (
    LOG,
    MODEL,
    PLOT,
    STATE,
    TrainState,
    draw,
    fit,
    load_state,
    open_log,
    read_log,
    read_values,
    save_state,
)
from sureshot.research.training.recipe import TrainingConfig
from tests.research.training.toy import Pairs, Toy, model

CONFIG = TrainingConfig(epochs=4, batch=5, rate=0.02, weight_decay=0.01, micro_batch=3)


@dataclasses.dataclass
class Run:
    """A run in a folder, with what was saved and told."""

    folder: object
    config: TrainingConfig = CONFIG
    dropout: float = 0.3
    seed: int = 0
    stop: int | None = None  # Ctrl-C after this step
    scores: list | None = None
    pairs: Pairs = dataclasses.field(default_factory=lambda: Pairs(captions=3))

    def __call__(self, **more):
        self.told, self.saved = [], []
        net = self.net = model(self.dropout, self.seed)
        scores = None if self.scores is None else iter(self.scores)

        def told(progress):
            self.told.append(progress)
            if progress.step == self.stop:
                raise KeyboardInterrupt

        def save(place, epoch, score):
            assert list(place.iterdir()) == []
            assert not net.training
            self.saved.append((epoch, score))
            torch.save(net.state_dict(), place / "weights.pt")
            (place / "epoch.json").write_text(json.dumps([epoch, score]))

        def validate():
            assert not net.training and not torch.is_grad_enabled()
            torch.rand(7)  # what validation draws must not reach the training
            return next(scores)

        resume = more.pop("resume", False)
        return fit(
            TrainState(net, self.pairs, self.config, **more),
            self.folder,
            save=save,
            validate=None if scores is None else validate,
            on_step=told,
            resume=resume,
        )

    def kept(self):
        return json.loads((self.folder / MODEL / "epoch.json").read_text())


def same(one, other):
    return all(torch.equal(weight, other[name]) for name, weight in one.items())


def timeless(folder):
    return [{k: v for k, v in entry.items() if k != "seconds"} for entry in read_log(folder / LOG)]


def test_a_run_learns_and_leaves_its_files(tmp_path):
    run = Run(tmp_path / "run", dataclasses.replace(CONFIG, epochs=30), dropout=0.0)
    fitted = run()
    contrast = [progress.losses["contrast"] for progress in run.told]
    assert sum(contrast[-3:]) < 0.6 * sum(contrast[:3])
    assert fitted.folder == run.folder / MODEL and fitted.notes == ()
    assert (fitted.epoch, fitted.score) == (30, None)
    assert run.saved == [(epoch, None) for epoch in range(1, 31)]
    assert run.kept() == [30, None]
    assert {path.name for path in run.folder.iterdir()} == {STATE, LOG, MODEL, PLOT}
    saved = torch.load(fitted.folder / "weights.pt")
    assert same(saved, run.net.state_dict())


def test_progress_and_log_tell_of_each_step(tmp_path):
    run = Run(tmp_path, scores=[10.0, 30.0, 20.0, 30.0])
    run()
    steps = 3  # twelve videos in batches of four
    assert [p.step for p in run.told] == list(range(1, 4 * steps + 1))
    assert [p.epoch for p in run.told] == sorted([1, 2, 3, 4] * 3)
    assert run.told[0].rate == 0.02 and run.told[-1].rate < 0.001
    assert all(p.seconds > 0 and p.gradient > 0 for p in run.told)
    entries = read_log(tmp_path / LOG)
    told = [entry for entry in entries if "losses" in entry]
    assert [entry["losses"] for entry in told] == [dict(p.losses) for p in run.told]
    assert set(told[0]) == {"epoch", "step", "losses", "gradient", "rate", "seconds"}
    scored = [entry for entry in entries if "losses" not in entry]
    assert scored == [
        {"epoch": 1, "step": 3, "score": 10.0, "kept": True},
        {"epoch": 2, "step": 6, "score": 30.0, "kept": True},
        {"epoch": 3, "step": 9, "score": 20.0, "kept": False},
        {"epoch": 4, "step": 12, "score": 30.0, "kept": False},
    ]


def test_a_first_rate_of_a_short_warm_up_is_not_zero(tmp_path):
    run = Run(tmp_path, dataclasses.replace(CONFIG, warmup=0.5))
    run()
    assert [p.rate for p in run.told[:6]] == pytest.approx([0.02 * n / 6 for n in range(1, 7)])


@pytest.mark.parametrize("captions", ["one", "all"])
@pytest.mark.parametrize(("epochs", "more"), [(0, 1), (2, 0), (2, 1), (3, 2)])
def test_a_run_that_goes_on_ends_bit_by_bit_as_one_never_stopped(tmp_path, captions, epochs, more):
    """Stopped within the first epoch, just before a third is finished, and within later ones."""
    config = dataclasses.replace(CONFIG, captions=captions)
    scores = [1.0, 3.0, 2.0, 2.5]
    whole = Run(tmp_path / "whole", config, scores=scores)
    expected = whole()
    steps = whole.told[-1].step // 4
    stopped = Run(tmp_path / "stopped", config, scores=scores, stop=epochs * steps + more)
    with pytest.raises(KeyboardInterrupt):
        stopped()
    done = epochs if more else epochs - 1
    # Where nothing was kept the first weights decide; elsewhere those of the state.
    rest = Run(tmp_path / "stopped", config, seed=99 if done else 0, scores=scores[done:])
    found = rest(resume=True)
    assert rest.told[0].step == done * steps + 1
    assert same(whole.net.state_dict(), rest.net.state_dict())
    one, other = (load_file(tmp_path / name / STATE) for name in ("whole", "stopped"))
    assert same(one, other) and one.keys() == other.keys()
    assert timeless(tmp_path / "whole") == timeless(tmp_path / "stopped")
    assert (found.epoch, found.score) == (expected.epoch, expected.score) == (2, 3.0)
    assert whole.kept() == rest.kept() == [2, 3.0]


@pytest.mark.parametrize(("stop", "done"), [(2, 1), (5, 4), (7, 6), (8, 7)])
def test_a_run_that_keeps_its_state_goes_on_within_an_epoch(tmp_path, stop, done):
    """Three steps an epoch; what was done is kept after each step but the one it was stopped in."""
    config = dataclasses.replace(CONFIG, save_every=1)
    scores = [1.0, 3.0, 2.0, 2.5]
    whole = Run(tmp_path / "whole", CONFIG, scores=scores)
    expected = whole()
    stopped = Run(tmp_path / "stopped", config, scores=scores, stop=stop)
    with pytest.raises(KeyboardInterrupt):
        stopped()
    rest = Run(tmp_path / "stopped", config, seed=99, scores=scores[done // 3 :])
    found = rest(resume=True)
    assert rest.told[0].step == done + 1
    assert same(whole.net.state_dict(), rest.net.state_dict())
    assert timeless(tmp_path / "whole") == timeless(tmp_path / "stopped")
    assert (found.epoch, found.score) == (expected.epoch, expected.score) == (2, 3.0)


def test_a_log_is_written_line_by_line_and_goes_on_after_the_steps_that_count(tmp_path):
    path = tmp_path / "run" / "log.jsonl"
    assert read_log(path) == []
    with open_log(path) as log:
        log.writelines(f'{{"step": {step}}}\n' for step in (1, 2, 3))
        assert [entry["step"] for entry in read_log(path)] == [1, 2, 3]
        log.write('{"step": 4, "lo')
    assert [entry["step"] for entry in read_log(path)] == [1, 2, 3]
    with open_log(path, after=2) as log:
        log.write('{"step": 3, "again": true}\n')
    assert read_log(path) == [{"step": 1}, {"step": 2}, {"step": 3, "again": True}]
    open_log(path).close()
    assert read_log(path) == []


def test_a_pair_that_cannot_be_read_is_left_out_of_its_batch(tmp_path):
    pairs = Pairs(captions=3)
    pairs.lost = {0, 1, 2}
    run, seen, whole = Run(tmp_path / "some", pairs=pairs), [], pairs.texts
    pairs.texts = lambda rows: seen.extend(rows) or whole(rows)
    run()
    assert len(run.told) == 12  # a batch lacks one pair; no batch is left out
    assert len(seen) > 0 and not {0, 1, 2} & set(seen)
    # The schedule does not wait for a batch that is left out: all but the first of each epoch are.
    first, second, *_ = plan(pairs.video_of, batch=5, seed=0)
    pairs.lost = set(range(36)) - {*first.tolist(), int(second[0])}  # one pair is no batch
    left = Run(tmp_path / "left", dataclasses.replace(CONFIG, epochs=1), pairs=pairs)
    left()
    assert [p.step for p in left.told] == [1]
    pairs.lost = set(range(36))
    with pytest.raises(SureshotError, match="in epoch 1: no batch has two videos that can be read"):
        Run(tmp_path / "none", pairs=pairs)()


def test_scaled_gradients_teach_what_plain_ones_do(tmp_path):
    found = []
    for precision in ("float32", "float16"):
        run = Run(tmp_path / precision, dataclasses.replace(CONFIG, precision=precision))
        run()
        found.append([(p.losses["loss"], p.gradient) for p in run.told])
    assert found[1] == [pytest.approx(pair, rel=1e-3) for pair in found[0]]


def test_the_scale_of_half_precision_goes_on_with_its_run(tmp_path):
    config = dataclasses.replace(CONFIG, precision="float16", save_every=1)
    whole = Run(tmp_path / "whole", config)
    whole()
    stopped = Run(tmp_path / "stopped", config, stop=5)
    with pytest.raises(KeyboardInterrupt):
        stopped()
    rest = Run(tmp_path / "stopped", config, seed=99)
    rest(resume=True)
    assert same(whole.net.state_dict(), rest.net.state_dict())


def test_pairs_hear_what_this_step_and_the_next_will_ask_for(tmp_path):
    pairs, heard = Pairs(captions=3), []
    whole = pairs.videos

    def videos(rows):
        heard.append((list(pairs.held), list(rows)))
        return whole(rows)

    pairs.videos = videos
    Run(tmp_path, dataclasses.replace(CONFIG, micro_batch=None), pairs=pairs)()
    assert all(set(rows) <= set(held) for held, rows in heard)
    for (held, _), (_, following) in pairwise(heard[:3]):
        assert set(following) <= set(held) and len(held) == 8
    assert len(heard[2][0]) == 4  # the last of an epoch


def test_a_finished_run_is_not_done_again(tmp_path):
    first = Run(tmp_path, scores=[1.0, 4.0, 2.0, 3.0])
    expected = first()
    again = Run(tmp_path, seed=5, scores=[])
    assert again(resume=True) == expected
    assert again.told == again.saved == []
    assert same(again.net.state_dict(), first.net.state_dict())


def test_a_state_of_another_version_is_refused(tmp_path):
    run = Run(tmp_path)
    run()
    values = read_values(tmp_path / STATE)
    del values["unreadable"]
    save_state(tmp_path / STATE, run.net, torch.optim.AdamW(run.net.parameters()), values)
    with pytest.raises(SureshotError, match="cannot go on: it is of another version"):
        Run(tmp_path)(resume=True)


@pytest.mark.parametrize(
    ("keep", "scores", "kept"),
    [
        (None, [1.0, -2.0, 0.5, 1.0], 1),
        ("best", [-3.0, -2.0, -5.0, -4.0], 2),
        ("last", [3.0, 2.0, 1.0, 0.0], 4),
        (None, None, 4),
        ("last", None, 4),
    ],
)
def test_the_checkpoint_is_the_best_on_validation_or_the_last(tmp_path, keep, scores, kept):
    run = Run(tmp_path, dataclasses.replace(CONFIG, keep=keep), scores=scores)
    fitted = run()
    assert (fitted.epoch, fitted.score) == (kept, scores and scores[kept - 1])
    assert run.kept() == [kept, scores and scores[kept - 1]]


def test_a_score_that_is_no_number_is_refused_and_the_good_checkpoint_stays(tmp_path):
    run = Run(tmp_path, scores=[1.0, math.nan])
    with pytest.raises(SureshotError, match="validation set is nan after epoch 2"):
        run()
    assert run.kept() == [1, 1.0]


def test_a_loss_that_is_not_finite_names_epoch_step_term_and_pair_and_spoils_nothing(tmp_path):
    run = Run(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        Run(tmp_path, stop=7)()
    good = (tmp_path / STATE).read_bytes()
    rows = plan(run.pairs.video_of, batch=5, seed=0, epoch=2)[1].tolist()
    run.pairs.words[rows[2]][:] = math.inf
    with pytest.raises(SureshotError) as caught:
        run(resume=True)
    message = str(caught.value)
    assert message.startswith("Training stopped in epoch 3, step 8. A loss is not finite (")
    assert "contrast = nan" in message
    assert run.pairs.name(rows[2]) in message and run.pairs.name(rows[1]) not in message
    assert (tmp_path / STATE).read_bytes() == good
    assert run.kept()[0] == 2


def test_a_gradient_that_is_not_finite_names_the_batch(tmp_path):
    run = Run(tmp_path)
    whole, net_of = run.pairs.videos, lambda: run.net

    def videos(rows):
        net_of().stem.frame.weight.register_hook(lambda grad: grad * math.nan)
        return whole(rows)

    run.pairs.videos = videos
    with pytest.raises(SureshotError) as caught:
        run()
    message = str(caught.value)
    assert "epoch 1, step 1. The gradient is not finite (of model.stem.frame.weight)" in message
    first = plan(run.pairs.video_of, batch=5, seed=0)[0].tolist()
    assert f"The batch of {len(first)} begins with {run.pairs.name(first[0])}" in message
    assert not (tmp_path / STATE).exists() and not (tmp_path / MODEL).exists()


def test_a_run_with_other_settings_or_data_is_not_taken_up(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        Run(tmp_path, stop=5)()
    with pytest.raises(SureshotError, match=r"training.rate was 0.02 and is 0.03 now"):
        Run(tmp_path, dataclasses.replace(CONFIG, rate=0.03))(resume=True)
    with pytest.raises(SureshotError, match="captions was 36 and is 33 now"):
        Run(tmp_path, pairs=Pairs(11, 3))(resume=True)
    Run(tmp_path, dataclasses.replace(CONFIG, workers=9))(resume=True)


def test_a_plot_that_cannot_be_written_is_a_note_and_no_failure(tmp_path):
    (tmp_path / PLOT).mkdir()
    run = Run(tmp_path)
    (note,) = run().notes
    assert "cannot be written" in note
    assert run.kept() == [4, None]


def test_two_videos_and_a_batch_of_one_pair_do_not_crash(tmp_path):
    config = dataclasses.replace(CONFIG, batch=2)
    Run(tmp_path / "two", config, pairs=Pairs(2, 1))()
    run = Run(tmp_path / "three", config, pairs=Pairs(3, 1))  # batches of two and of one
    run()
    assert [len(rows) for rows in plan([0, 1, 2], batch=2)] == [2, 1]
    with pytest.raises(SureshotError, match="at least two videos"):
        Run(tmp_path / "one", config, pairs=Pairs(1, 3))()


class Tuned(Pairs):
    """Pairs whose tokens come from a network that is trained as well."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.encoder = nn.Linear(6, 6)

    def videos(self, rows):
        tokens = super().videos(rows)
        return tokens._replace(frames=self.encoder(tokens.frames) * tokens.mask[..., None])


def test_an_encoder_is_trained_at_its_own_rate_and_kept_in_the_state(tmp_path):
    moved = {}
    for rate in (0.0, 1e-4):
        pairs = Tuned()
        before = pairs.encoder.weight.detach().clone()
        config = dataclasses.replace(CONFIG, encoder_rate=rate, weight_decay=0.0)
        Run(tmp_path / str(rate), config, pairs=pairs)(encoder=pairs.encoder)
        moved[rate] = (pairs.encoder.weight.detach() - before).abs().max().item()
        kept = load_file(tmp_path / str(rate) / STATE)
        assert torch.equal(kept["weights.encoder.weight"], pairs.encoder.weight)
    assert moved[0.0] == 0
    assert 1e-5 < moved[1e-4] < 2e-3


def test_labels_of_pairs_join_the_codes_of_their_texts(tmp_path, monkeypatch):
    seen = []
    run = Run(tmp_path / "run", dataclasses.replace(CONFIG, epochs=1))
    losses = Toy.losses

    def watched(self, texts, videos, generator=None):
        seen.append((texts["row"].tolist(), texts["sentence"], "row" in videos))
        return losses(self, texts, videos, generator)

    monkeypatch.setattr(Toy, "losses", watched)
    run(labels=lambda rows: {"row": torch.tensor(list(rows))})
    batches = plan(run.pairs.video_of, batch=5, seed=0, epoch=0)
    assert [row for row, _, _ in seen] == [batch.tolist() for batch in batches]
    for row, sentence, _ in seen:
        assert not any(leaked for _, _, leaked in seen)
        assert len(sentence) == len(row)


def trained(steps=2, seed=0, width=3):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(width, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    net.register_parameter("tied", net[0].weight)
    optimiser = torch.optim.AdamW(net.parameters(), lr=0.1)
    for _ in range(steps):
        step(net, optimiser)
    return net, optimiser


def step(net, optimiser):
    net(torch.arange(12.0).view(4, 3) / 12).square().sum().backward()
    optimiser.step()
    optimiser.zero_grad()


def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch):
    net, optimiser = trained()
    path = tmp_path / "state.safetensors"
    save_state(path, net, optimiser, {"epoch": 1})

    def full(tensors, name, header):
        name.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sureshot.research.training.loop.save_file", full)
    with pytest.raises(SureshotError, match=r"cannot be kept in .*No space left"):
        save_state(path, net, optimiser, {"epoch": 2})
    assert read_values(path) == {"epoch": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["state.safetensors"]


def test_a_file_that_does_not_fit_or_is_damaged_is_refused(tmp_path):
    net, optimiser = trained()
    path = tmp_path / "state.safetensors"
    save_state(path, net, optimiser, {})
    other = nn.Linear(2, 2)
    with pytest.raises(SureshotError, match=r"cannot go on: .*Unexpected key"):
        load_state(path, other, torch.optim.AdamW(other.parameters()))
    sound = path.read_bytes()
    path.write_bytes(sound.replace(b".step", b".steq"))
    with pytest.raises(
        SureshotError, match="cannot go on: the memory of the optimiser lacks 'step'"
    ):
        load_state(path, net, optimiser)
    path.write_bytes(sound[:-40])
    with pytest.raises(SureshotError, match="cannot go on"):
        read_values(path)
    with pytest.raises(SureshotError, match="cannot go on"):
        load_state(path, net, optimiser)
    with pytest.raises(SureshotError, match="cannot go on"):
        read_values(tmp_path / "none.safetensors")


def test_the_picture_shows_losses_and_scores_the_same_each_time(tmp_path):
    losses, scores = [3.0, 2.0, 1.5, 1.2], [(2, 100.0), (4, 150.0)]
    draw(tmp_path / "plain.png", losses)
    for name in ("a.png", "a.svg", "b.svg"):
        draw(tmp_path / name, losses, scores, title="run", metric="r1")
    gaps = []
    for name in ("plain", "a"):
        pixels = np.asarray(Image.open(tmp_path / f"{name}.png").convert("RGB")).astype(int)
        gaps.append(((pixels - [213, 94, 0]) ** 2).sum(-1).min())  # orange
    assert gaps[0] > 1000 > 10 > gaps[1]
    text = (tmp_path / "a.svg").read_text()
    assert (
        "<svg" in text
        and "<!-- r1 on the validation set -->" in text
        and text == (tmp_path / "b.svg").read_text()
    )


def test_without_matplotlib_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SureshotError, match=r"needs matplotlib, .* pip install .*'matplotlib>="):
        draw(tmp_path / "a.png", [1.0])
    assert list(tmp_path.iterdir()) == []
