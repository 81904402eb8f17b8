"""What a user should know about texts before believing how a model compares them."""

from collections.abc import Sequence

from sureshot.library.foreign_text import looks_foreign
from sureshot.models.encoders import Encoder, TextFeatures
from sureshot.text import other_script

_REMEDY = "Index with a multilingual one, such as google/siglip2-base-patch16-224."


def text_warnings(
    encoder: Encoder, texts: Sequence[str], features: TextFeatures
) -> tuple[str, ...]:
    """A warning for a text that is too long, and for one in a language the encoder does not know.

    Args:
        encoder: what encoded the texts.
        texts: the texts, cleaned.
        features: what the encoder made of them.
    """
    warnings = []
    if features.truncated.any():
        longest = features.mask.shape[1]
        warnings.append(
            f"The text is longer than the model reads; what follows its first {longest} tokens "
            f"was left out."
        )
    knows = f"{encoder.name!r} knows English only"
    if encoder.latin_only and any(other_script(text) for text in texts):
        warnings.append(f"The model {knows}; this answer is guesswork. {_REMEDY}")
    elif encoder.latin_only and any(looks_foreign(text) for text in texts):
        warnings.append(
            f"This does not look like English, and the model {knows}; say it in English. {_REMEDY}"
        )
    return tuple(warnings)
