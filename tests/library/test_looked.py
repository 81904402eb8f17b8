"""What is worked out of windows is the same whoever asks first, and worked out once."""

from pathlib import Path

import numpy as np

from sureshot.library.ranking import WindowScores
from sureshot.models.encoders.base import VideoFeatures
from sureshot.models.similarity import MeanFrames
from sureshot.store.index import Store
from tests.encoded import make_store, random_windows, record


class Counting(MeanFrames):
    """Counts the videos that it codes."""

    coded = 0

    def videos(self, videos):
        self.coded += len(videos.mask)
        return super().videos(videos)


def test_windows_and_frames_have_their_scores_and_are_coded_once(tmp_path: Path) -> None:
    make_store(tmp_path).write(record("/v.mp4"), random_windows(6))
    windows = Store.open(tmp_path).windows_of(Path("/v.mp4"))
    how, queries = Counting(), np.eye(24, dtype=np.float32)[:2]
    looked = WindowScores(windows, how)
    looks = MeanFrames()
    expected = looks.similarity(queries, looks.videos(windows.features)).max(0)
    assert looked.scores(queries).tolist() == expected.tolist()
    assert looked.scores(queries[:1]).shape == (6,)
    for rows in ([4, 1], [1, 0, 4], [2]):
        for row, found in zip(rows, looked.frame_scores(queries, rows), strict=True):
            frames = windows.frames[row][windows.mask[row]][:, None]
            single = VideoFeatures.of_frames(frames, np.ones((len(frames), 1), bool))
            alone = looks.similarity(queries, looks.videos(single)).max(0)
            assert np.allclose(found, alone, atol=1e-6)
    assert how.coded == 6 + windows.mask[[4, 1, 0, 2]].sum()
