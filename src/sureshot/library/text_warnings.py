"""What a user should know about texts before believing how a model compares them."""

from collections.abc import Sequence

from sureshot.library.foreign_text import looks_foreign
from sureshot.library.unknown_words import unknown_words
from sureshot.models.encoders import Encoder, TextFeatures
from sureshot.text import other_script, plain

_SHOWN = 3  # words that are named
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
    elif encoder.vocabulary is not None:
        found = [unknown_words(text, encoder.vocabulary) for text in texts]
        words = list(dict.fromkeys(word for unknown, _ in found for word in unknown))
        if words:
            warnings.append(
                f"No caption that the model learned from had {_listed(words)}; check the spelling."
            )
        elif any(nothing for _, nothing in found):
            warnings.append("Name something that can be seen; nothing here says what to look for.")
    return tuple(warnings)


def is_foreign(encoder: Encoder, text: str) -> bool:
    """Whether nothing in a text is known to a model, so that percentages learned on others lie.

    That is a language it does not know, or no word of the captions it learned from.
    """
    if encoder.latin_only and (other_script(text) or looks_foreign(text)):
        return True
    return encoder.vocabulary is not None and unknown_words(text, encoder.vocabulary)[1]


def _listed(words: Sequence[str]) -> str:
    """Some words in quotes, the first few of many."""
    quoted = [f"“{plain(word)}”" for word in words[:_SHOWN]]
    more = [f"{len(words) - _SHOWN} more"] if len(words) > _SHOWN else []
    *first, last = [*quoted, *more]
    return f"{', '.join(first)} or {last}" if first else last
