"""Pictures become a film that can be read again."""

import numpy as np

from sureshot.media.mp4 import write_pictures
from sureshot.media.sampling import sample_frames


def test_a_film_shows_the_pictures_it_was_made_of(tmp_path):
    draw = np.random.default_rng(0)
    pictures = [np.full((64, 64, 3), draw.integers(30, 220, 3), np.uint8) for _ in range(8)]
    write_pictures(tmp_path / "film.mp4", pictures, 4)
    seen = sample_frames(tmp_path / "film.mp4", 8, 64)
    assert seen.shape == (8, 64, 64, 3)
    assert abs(seen.astype(int) - np.stack(pictures)).max() < 12
