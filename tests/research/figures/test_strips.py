"""Figures of frames: the numbers against the model's own scores, and that they are drawn."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from sureshot.datasets.split import Item
from sureshot.datasets.synthetic import SyntheticOptions, read_part
from sureshot.errors import SureshotError
from sureshot.metrics.hubs import dual_softmax, nearest_neighbour_normalised, querybank_norm
from sureshot.metrics.ranks import text_ranks
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.research.canvas import BLUE
from sureshot.research.figures import strips
from sureshot.research.figures.strips import Cell, Strip, draw_strips
from sureshot.research.synthetic import write_dataset
from tests.research.figures.pictures import pixels, share, shown, untidy

# --- the renderer ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def walls_of(subject):
    """Videos of one colour and then another: red green, green blue, blue white, …"""
    return subject("tiny").items


def first(figure):
    """Colour in the middle of the first picture."""
    box = figure.axes[0].images[0].get_extent()
    x, y = (box[0] + box[1]) / 2 * 100, (box[2] + box[3]) / 2 * 100
    return pixels(figure)[round(y), round(x)]


@pytest.mark.parametrize(("frame", "colour"), [(0, (255, 0, 0)), (2, (0, 255, 0))])
def test_the_frame_asked_for_is_drawn(walls_of, frame, colour):
    cell = Cell(walls_of[0], frame=frame, frames=3)
    assert np.abs(first(draw_strips("", [Strip("", [cell])], 4)) - colour).max() < 40


def test_a_picture_stands_upright_and_is_whole(tmp_path):
    photo = np.zeros((90, 300, 3), np.uint8)
    photo[:45], photo[45:] = (255, 0, 0), (0, 0, 255)
    Image.fromarray(photo).save(tmp_path / "a.png")
    figure = draw_strips("", [Strip("", [Cell(Item("a", tmp_path / "a.png"))])], 2)
    (image,) = figure.axes[0].images
    left, right, bottom, top = (round(100 * edge) for edge in image.get_extent())
    seen = pixels(figure)[top + 3 : bottom - 3, left + 3 : right - 3]
    high = len(seen)
    red, blue = seen[high * 35 // 100 : high * 45 // 100], seen[high * 55 // 100 : high * 65 // 100]
    assert red[..., 0].min() > 240 > 15 > red[..., 2].max()
    assert blue[..., 2].min() > 240 > 15 > blue[..., 0].max()
    assert np.ptp(seen[: high // 5].reshape(-1, 3), axis=0).max() < 15  # above it there is nothing


def test_a_video_that_is_gone_leaves_a_place(walls_of, tmp_path):
    gone, broken = Item("x", tmp_path / "gone.mp4"), Item("y", tmp_path / "broken.mp4")
    broken.path.write_text("no video")
    figure = draw_strips("", [Strip("", [Cell(gone), Cell(broken), Cell(walls_of[0])])], 3)
    assert shown(figure).count("cannot be read") == 2
    assert len(figure.axes[0].images) == 1


def test_a_file_that_changed_is_read_again_for_the_next_figure(tmp_path):
    strip = Strip("", [Cell(Item("a", tmp_path / "a.png"))])
    for colour in ((255, 0, 0), (0, 0, 255)):
        Image.new("RGB", (64, 48), colour).save(tmp_path / "a.png")
        assert np.abs(first(draw_strips("", [strip], 2)) - colour).max() < 40


def test_nothing_is_drawn_over_another_row_or_beyond_the_page(walls_of):
    text = "a very long sentence that goes on about $5 or $6_a^b walls and colours " * 3
    cells = [Cell(item, ["one", "two", text]) for item in walls_of[:4]]
    notes = [(f"{n}. {text}", n == 1) for n in range(4)]
    rows = [Strip(text, cells, "label"), Strip("", cells[:1], "", notes), Strip("last", cells)]
    figure = draw_strips(text, rows, 4)
    assert untidy(figure) == []
    (axes,) = figure.axes
    pictures = [one.get_window_extent() for one in axes.images]
    assert len(pictures) == 9
    assert not [1 for a, b in itertools.combinations(pictures, 2) if a.overlaps(b)]
    boxes = [(one.get_text(), one.get_window_extent()) for one in axes.texts]
    assert not [t for t, b in boxes if t.strip() and any(b.overlaps(p) for p in pictures)]


def test_examples_have_a_frame_of_each_scene_and_captions(tmp_path):
    options = SyntheticOptions(train=2, val=2, test=2, captions=2)
    dataset = write_dataset(tmp_path / "synthetic", options)
    part = read_part(dataset.folder, "test")
    figure = strips.draw_examples(dataset.folder)
    assert len(figure.axes[0].images) == sum(len(video.scenes) for video in part.videos)
    text = " ".join(shown(figure).split())
    assert all(caption.text in text for caption in part.captions) and untidy(figure) == []
    assert text.count("of 2 videos)") == 4


# --- results and captions -------------------------------------------------------------------------


@pytest.mark.parametrize("system", ["duq", "tiny"])
def test_the_best_three_videos_and_the_right_one_are_shown(subject, system):
    of = subject(system)
    numbers = strips.results([of], 6)
    every, ranks = of.matrices(range(12)), text_ranks(of.scores, of.owner)
    for query, answer in zip(of.pairs(6), numbers["queries"], strict=True):
        order, own = np.argsort(-of.scores[query], kind="stable"), of.owner[query]
        expected = list(order[:3]) + ([] if own in order[:3] else [own])
        assert answer["query"] == of.text(query)
        assert [hit["name"] for hit in answer["hits"]] == [of.names[v] for v in expected]
        (right,) = [hit for hit in answer["hits"] if hit["right"]]
        assert (right["name"], right["rank"]) == (of.names[own], ranks[query])
        for video, hit in zip(expected, answer["hits"], strict=True):
            assert hit["values"] == pytest.approx(
                {name: float(matrix[query, video]) for name, matrix in every.items()}, abs=1e-5
            )
        measures = {n: v[query] for n, v in of.measures.items() if n.startswith("text")}
        assert answer["measures"] == measures
    figure = strips.draw_results([of], numbers)
    text = " ".join(shown(figure).split())
    assert len(figure.axes[0].images) == sum(len(one["hits"]) for one in numbers["queries"])
    assert all(f"“{one['query']}”" in text for one in numbers["queries"])
    assert text.count("✓") == 6 and share(pixels(figure), BLUE) > 0.005
    if system == "duq":
        assert text.count("belief 0.") == len(figure.axes[0].images)
        assert "belief: belief that the pair belongs together" in text
        assert "vacuity of the text (lack of evidence, 0 to 1) = " in text


@pytest.mark.parametrize("system", ["duq", "xpool"])
def test_of_a_video_the_texts_are_ranked(subject, system):
    of = subject(system)
    numbers = strips.captions([of], 4)
    every = of.matrices(range(12))
    for query, answer in zip(of.pairs(4), numbers["queries"], strict=True):
        video = of.owner[query]
        column = of.scores[:, video]
        order = np.argsort(-column, kind="stable").tolist()
        own = [row for row in order if of.owner[row] == video]
        expected = order[:3] + ([] if set(own) & set(order[:3]) else own[:1])
        assert answer["query"] == of.names[video]
        assert [hit["name"] for hit in answer["hits"]] == [of.text(row) for row in expected]
        assert [hit["right"] for hit in answer["hits"]] == [row in own for row in expected]
        for row, hit in zip(expected, answer["hits"], strict=True):
            assert hit["rank"] == 1 + (column > column[row]).sum()
            assert hit["values"] == pytest.approx(
                {name: float(matrix[row, video]) for name, matrix in every.items()}, abs=1e-5
            )
        assert all(name.startswith("video") for name in answer["measures"])
    figure = strips.draw_captions([of], numbers)
    text = " ".join(shown(figure).split())
    hits = [hit for answer in numbers["queries"] for hit in answer["hits"]]
    assert len(figure.axes[0].images) == 4
    assert all(f"{hit['rank']:g}. {hit['name']} (score" in text for hit in hits)
    assert text.count("✓") == sum(hit["right"] for hit in hits)


# --- failures -------------------------------------------------------------------------------------


def scored(subject, score):
    """A subject in which every query scores so much with its own video, and 0 with all others."""
    made = replace(subject)
    scores = np.zeros((len(made.owner), len(made.items)), np.float32)
    scores[np.arange(len(made.owner)), made.owner] = score
    made.__dict__["scores"] = scores
    return made


def test_each_failure_has_its_right_video_below_others(subject):
    of = subject("duq")
    ranks = text_ranks(of.scores, of.owner)
    numbers = strips.failures([of], 100)
    assert (numbers["failed"], numbers["queries"]) == ((ranks > 1).sum(), 12)
    texts = [of.text(query) for query in range(12)]
    assert 0 < len(numbers["shown"]) <= numbers["failed"]
    for one in numbers["shown"]:
        query = texts.index(one["query"])
        scores, own = of.scores[query], of.owner[query]
        assert one["right"]["rank"] == ranks[query] > 1
        assert (one["right"]["name"], one["right"]["right"]) == (of.names[own], True)
        order = [v for v in np.argsort(-scores, kind="stable") if scores[v] >= scores[own]]
        assert [hit["name"] for hit in one["above"]] == [of.names[v] for v in order if v != own][:4]
        assert not any(hit["right"] for hit in one["above"])
    assert len({one["right"]["name"] for one in numbers["shown"]}) == len(numbers["shown"])
    figure = strips.draw_failures([of], numbers)
    text = " ".join(shown(figure).split())
    assert f"{numbers['failed']} of 12 texts do not find their video first" in text
    assert len(figure.axes[0].images) == sum(1 + len(one["above"]) for one in numbers["shown"])


def test_a_tie_is_a_failure_and_without_failures_there_is_nothing_to_draw(subject):
    (one,) = strips.failures([scored(subject("duq"), 0.0)], 1)["shown"]
    assert one["right"]["rank"] == 3.5 and len(one["above"]) == 4
    with pytest.raises(SureshotError, match=r"No query of pairs .* failed"):
        strips.failures([scored(subject("duq"), 1.0)], 3)


# --- re-ranking -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("after", "name"), [("score", "score"), ("printed", "printed score")])
def test_duq_is_compared_with_its_plain_similarity(subject, after, name):
    of = subject("duq")
    matrices = of.matrices(range(12))
    numbers = strips.rank_changes([of], 4, after)
    assert numbers["scores"] == ["similarity", name]
    before, later = (text_ranks(matrices[key], of.owner) for key in numbers["scores"])
    assert (numbers["rose"], numbers["fell"]) == ((before > later).sum(), (before < later).sum())
    assert numbers["rose"] + numbers["fell"] + numbers["stayed"] == 12
    assert numbers["r1"] == pytest.approx([100 * (x <= 1).mean() for x in (before, later)])
    texts = [of.text(query) for query in range(12)]
    for change in numbers["shown"]:
        query = texts.index(change["query"])
        assert change["ranks"] == [before[query], later[query]] and before[query] != later[query]
        for key, hits in zip(numbers["scores"], (change["before"], change["after"]), strict=True):
            row = matrices[key][query]
            order = np.argsort(-row, kind="stable")[:4]
            assert [hit["name"] for hit in hits] == [of.names[video] for video in order]
            assert [hit["right"] for hit in hits] == list(order == of.owner[query])
            assert [hit["values"]["score"] for hit in hits] == pytest.approx(sorted(row)[::-1][:4])
    figure = strips.draw_rank_changes([of], numbers)
    text = shown(figure)
    assert len(figure.axes[0].images) == 8 * len(numbers["shown"]) > 0
    for change in numbers["shown"]:
        for score, rank in zip(numbers["scores"], change["ranks"], strict=True):
            assert f"{score}: right video at rank {rank:g}" in text
    assert f"{numbers['rose']} queries rise" in " ".join(text.split())


BY_HAND = {
    "dsl": lambda of, bank: dual_softmax(of.scores, of.scorer.scale),
    "qb_norm": lambda of, bank: querybank_norm(of.scores, bank),
    "nnn": lambda of, bank: nearest_neighbour_normalised(of.scores, bank),
}


@pytest.mark.parametrize("after", ["dsl", "inverted_softmax", "qb_norm", "nnn"])
def test_any_system_can_be_corrected_for_hubs(subject, after):
    of = subject("xpool")
    of.system.log_scale.data.fill_(0)  # far from the 100 of an encoder alone
    bank = np.random.default_rng(0).random((20, 6)).astype(np.float32)
    numbers = strips.rank_changes([of], 3, after, bank)
    assert numbers["scores"] == ["score", after]
    if after in BY_HAND:
        later = text_ranks(BY_HAND[after](of, bank), of.owner)
        assert numbers["r1"][1] == pytest.approx(100 * (later <= 1).mean())
        assert numbers["rose"] == (text_ranks(of.scores, of.owner) > later).sum()


def test_the_largest_moves_are_shown_half_up_half_down():
    before = np.array([9.0, 2.0, 1.0, 5.0, 1.0, 400.0, 7.0, 1.0])
    after = np.array([1.0, 1.0, 3.0, 5.0, 2.0, 300.0, 9.0, 8.0])
    # Rises by ratio: 0 (9), 1 (2); falls: 7 (8), 2 (3), 4 (2). 5 and 6 never reach the first four.
    for count, expected in ((4, [0, 1, 7, 2]), (3, [0, 1, 7]), (1, [0]), (99, [0, 1, 7, 2, 4])):
        assert strips.largest_moves([before, after], count) == expected
    assert strips.largest_moves([after, before], 3) == [7, 2, 0]
    assert strips.largest_moves([before, before], 4) == []
    assert strips.largest_moves([np.ones(3), np.array([2.0, 3.0, 4.0])], 2) == [2, 1]


# --- words against frames -------------------------------------------------------------------------


def test_a_video_is_read_by_its_own_text_and_by_the_best_other(subject):
    of = subject("uatvr")
    numbers = strips.tokens([of], 4)
    for query, one in zip(of.pairs(4), numbers["videos"], strict=True):
        own, other = one["texts"]
        column = int(of.owner[query])
        assert one["video"] == of.names[column]
        assert (own["right"], other["right"], own["text"]) == (True, False, of.text(query))
        others = [row for row in range(12) if of.owner[row] != column]
        best = max(others, key=lambda row: of.scores[row, column])
        assert (other["text"], other["score"]) == (of.text(best), of.scores[best, column])
        texts, videos = of.text_codes([query]), of.video_codes([column])
        products = texts["words"][0][texts["mask"][0]] @ videos["frames"][0].T
        values = [*own["frames"], *own["learned"]]
        assert values == pytest.approx(products.amax(0).tolist(), abs=1e-5)
        assert len(own["frames"]) == len(of.features.videos[column].frames)
        names = of.text(query).split()
        cosines, places = products[: len(names)].max(0)
        assert [*own["words"], *own["learned_words"]] == [
            {"word": names[place], "cosine": pytest.approx(cosine, abs=1e-5)}
            for place, cosine in zip(places.tolist(), cosines.tolist(), strict=True)
        ]


class Wordless:
    """An encoder that does not know what its tokens are."""

    def __getattr__(self, name):
        if name == "words_of":
            raise AttributeError(name)
        return getattr(TinyEncoder(), name)


class Miscounting(TinyEncoder):
    """Says fewer words than it gave tokens."""

    def words_of(self, texts):
        return [names[:-1] for names in super().words_of(texts)]


@pytest.mark.parametrize("encoder", [None, Wordless, Miscounting])
def test_an_encoder_that_cannot_say_its_words_claims_none(subject, encoder):
    of = [subject("uatvr", encoder=encoder() if encoder else None)]
    numbers = strips.tokens(of, 2)
    figure = strips.draw_tokens(of, numbers)
    text, texts = shown(figure), [one for video in numbers["videos"] for one in video["texts"]]
    assert len(figure.axes[0].images) == sum(len(one["frames"]) for one in texts) > 4
    assert text.count("learned tokens: ") == 4 and text.count("✓ “") == 2
    assert untidy(figure) == [] and share(pixels(figure), "#1a1a1a", 4) > 0.005
    words = [word for one in texts for word in one["words"]]
    if encoder:
        assert set(words) == {None}
    else:
        assert all(f"“{word['word']}” " in text for word in words)


def test_two_models_show_the_best_video_of_the_texts_they_differ_on(subject):
    both = [subject("uatvr"), subject("uatvr", weights=1)]
    numbers = strips.tokens(both, 3)
    tops = [one.scores.argmax(1) for one in both]
    right = [top == both[0].owner for top in tops]
    assert numbers["queries"] == 12
    assert numbers["first_alone"] == int((right[0] & ~right[1]).sum())
    assert numbers["second_alone"] == int((right[1] & ~right[0]).sum())
    assert numbers["first_alone"] + numbers["second_alone"] > 0, "models that agree test nothing"
    texts = [both[0].text(query) for query in range(12)]
    rows = numbers["rows"]
    assert 2 <= len(rows) <= 6 and len({row["model"] for row in rows}) == 2
    for pair in zip(rows[::2], rows[1::2], strict=True):
        assert pair[0]["text"] == pair[1]["text"]
        query = texts.index(pair[0]["text"])
        assert right[0][query] != right[1][query]
        for row, one, top in zip(pair, both, tops, strict=True):
            assert row["video"] == one.names[top[query]]
            assert row["right"] == (top[query] == one.owner[query])
            assert row["score"] == one.scores[query, top[query]]
    figure = strips.draw_tokens(both, numbers)
    assert untidy(figure) == [] and all(f"{row['model']}: " in shown(figure) for row in rows)
    # The bars of both are on one scale.
    values = [value for row in rows for value in (*row["frames"], *row["learned"])]
    bars = [patch for patch in figure.axes[0].patches if patch.get_height() == 0.07]
    whole = max(patch.get_width() for patch in bars)
    filled = [patch.get_width() / whole for patch in bars[1::2]]
    frames = np.array([value for row in rows for value in row["frames"]])
    expected = (frames - min(values)) / (max(values) - min(values))
    np.testing.assert_allclose(filled, expected, atol=1e-6)
