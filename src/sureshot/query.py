"""What is typed as a query, as a text that can be encoded and printed."""

import unicodedata

from sureshot.errors import QueryError

_LONGEST = 100_000  # characters that are looked at


def clean(query: str) -> str:
    """A query as one line of printable text.

    Raises:
        QueryError: nothing is left of it.
    """
    # Undecodable bytes of a terminal arrive as lone surrogates, which no tokenizer takes.
    text = query[:_LONGEST].encode("utf-8", "replace").decode("utf-8")
    text = "".join(" " if unicodedata.category(c) == "Cc" else c for c in text)
    text = " ".join(text.split())
    if not any(c.isprintable() for c in text.replace(" ", "")):
        raise QueryError('The query is empty; describe what you look for, like "a dog on a beach".')
    return text


def other_script(text: str) -> bool:
    """Whether most letters of a text are not Latin."""
    letters = [c for c in text if c.isalpha()]
    latin = sum("LATIN" in unicodedata.name(c, "") for c in letters)
    return bool(letters) and latin < len(letters) / 2
