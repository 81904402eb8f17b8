"""The page of examples shows frames and captions of a world."""

from sureshot.datasets.synthetic import SyntheticOptions
from sureshot.research.synthetic import write_dataset, write_examples


def test_the_page_has_the_captions_and_a_frame_of_each_scene(tmp_path):
    world = write_dataset(tmp_path / "world", SyntheticOptions(train=2, val=2, test=2, captions=2))
    page = write_examples(world.folder, tmp_path / "page.svg", videos=2).read_text()
    from sureshot.datasets.synthetic import read_part

    part = read_part(world.folder, "test")
    assert page.count("<image") == sum(len(video.scenes) for video in part.videos)
    assert "of 2 videos" in page
