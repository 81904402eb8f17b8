"""Shapes of tensors that layers, losses, scores and systems share, by name.

Scores have rows texts and columns videos. A mask is True where a token, word or frame is real, and
every item has at least one; what is at padding has no influence, but must be finite.
"""

from jaxtyping import Bool, Float
from torch import Generator, Tensor

Scalar = Float[Tensor, ""]
Number = float | Scalar
Losses = dict[str, Scalar]  # of a batch, by name
Rng = Generator | None  # of random numbers; None is torch's own

Vectors = Float[Tensor, "items dim"]  # items are texts or videos
Tokens = Float[Tensor, "items tokens dim"]
Mask = Bool[Tensor, "items tokens"]
Samples = Float[Tensor, "items k dim"]

Texts = Float[Tensor, "texts dim"]
Words = Float[Tensor, "texts words dim"]
WordMask = Bool[Tensor, "texts words"]
TextSamples = Float[Tensor, "texts k dim"]

Videos = Float[Tensor, "videos dim"]
Frames = Float[Tensor, "videos frames dim"]
FrameMask = Bool[Tensor, "videos frames"]
VideoSamples = Float[Tensor, "videos m dim"]

Scores = Float[Tensor, "texts videos"]  # of every pair
Matched = Bool[Tensor, "texts videos"]
Square = Float[Tensor, "items items"]  # of a batch, matched on the diagonal
