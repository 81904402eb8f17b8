import numpy as np

from sureshot.models.encoders.base import encode_together
from sureshot.models.encoders.toy import TinyEncoder


def test_each_video_gets_its_own_features_whatever_lies_in_its_batch():
    encoder, draw = TinyEncoder(), np.random.default_rng(0)
    videos = [draw.integers(0, 256, (n, 3, 16, 16), np.uint8) for n in (3, 1, 2)]
    for video, features in zip(videos, encode_together(encoder, videos), strict=True):
        alone = encoder.encode_frames(video)
        assert np.array_equal(features.frames, alone.frames)
        assert np.array_equal(features.patches, alone.patches)
        assert np.array_equal(features.backbone, alone.backbone)


def test_shapes_do_not_mix_and_the_order_stays():
    batches = []

    class Wide(TinyEncoder):
        def encode_frames(self, prepared):
            batches.append(prepared.shape)
            return super().encode_frames(prepared[:, :, :16, :16])

    encoder = Wide()
    shades = [
        np.full((2, 3, 16, width), value, np.uint8)
        for width, value in ((16, 10), (20, 20), (16, 30), (20, 40))
    ]
    found = encode_together(encoder, shades)
    assert batches == [(4, 3, 16, 16), (4, 3, 16, 20)]
    means = [float(features.backbone.mean()) * 255 for features in found]
    assert np.allclose(means, [10, 20, 30, 40], atol=1e-3)
    assert encode_together(encoder, []) == []
