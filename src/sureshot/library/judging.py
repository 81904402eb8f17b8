"""Judging hits: somebody looks at the best hits of a query and says which are right."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from sureshot.errors import SureshotError
from sureshot.library.answer import Hit
from sureshot.library.labels import Label, append, mend, read_labels
from sureshot.library.search import Searcher
from sureshot.text import clean, plain

ROUGH, FULL = 50, 200  # judged queries that a first and a full calibration need

Verdict = Literal["yes", "no", "absent", "more", "unknown", "again", "skip", "quit"]


class Judgements:
    """A file of judged queries that grows while somebody judges.

    Args:
        file: lines of JSON, as `sureshot.library.labels` describes them; need not be there yet.

    Attributes:
        file: the same.
        mended: whether half a line at its end, left by a loss of power, was dropped.

    Raises:
        SureshotError: it cannot be read or written, or is something else.
    """

    def __init__(self, file: str | Path) -> None:
        self.file = Path(file).expanduser()
        self._check()
        self.mended = mend(self.file)
        known = self.file.exists() and self.file.stat().st_size > 0
        self._labels = {label.query: label for label in read_labels(self.file)} if known else {}

    def __len__(self) -> int:
        """Queries judged so far."""
        return len(self._labels)

    def left(self, queries: Sequence[str]) -> list[str]:
        """Those of some queries that are not judged yet, each once.

        Raises:
            QueryError: one is empty.
        """
        cleaned = dict.fromkeys(clean(query) for query in queries)
        return [query for query in cleaned if query not in self._labels]

    def add(self, label: Label) -> None:
        """Keep a judged query; it is on the disk when this returns.

        Raises:
            SureshotError: it cannot be written.
        """
        append(self.file, label)
        self._labels[label.query] = label

    def count(self, state: str) -> int:
        """Judged queries that are ``present``, ``absent`` or ``not found``."""
        return sum(label.state == state for label in self._labels.values())

    def _check(self) -> None:
        try:
            with self.file.open("rb") as opened:
                first = opened.read(4096).lstrip()[:1]
        except FileNotFoundError:
            return
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise SureshotError(f"{plain(self.file)} cannot be read: {reason}.") from None
        if first not in (b"", b"{"):
            raise SureshotError(
                f"{plain(self.file)} holds something other than judgements; name another file."
            )


def judge(
    searcher: Searcher,
    query: str,
    k: int,
    ask: Callable[[Hit], Verdict],
    ask_more: Callable[[int], Verdict],
) -> Label | Literal["skip", "quit"]:
    """What somebody says of the best hits of one query.

    Of each video only its best moment is shown. Where none of ``k`` is right, as many more are
    shown if they are asked for.

    Args:
        searcher: of the index.
        query: what is looked for.
        k: hits that are judged.
        ask: gives "yes", "no", "absent" (no video shows it), "again" (from the first hit on),
            "skip" or "quit" for a hit.
        ask_more: the same after so many hits of which none is right: "more", "absent", "unknown"
            (it may be there), "again", "skip" or "quit".

    Returns:
        The label, or what the query ended with.

    Raises:
        SureshotError: nothing is indexed.
    """
    while True:
        relevant: list[Path] = []
        judged: list[Path] = []
        verdict: Verdict = "no"
        for page in _pages(searcher, query, k):
            for hit in page:
                verdict = ask(hit)
                if verdict not in ("yes", "no"):
                    break
                shown = (hit.path, *hit.copies)
                judged += shown
                relevant += shown if verdict == "yes" else ()
            if verdict in ("yes", "no") and not relevant:
                verdict = ask_more(len(judged))
            if verdict != "more":
                break
        else:
            verdict = "absent"  # every video was looked at
        if verdict == "skip" or verdict == "quit":
            return verdict
        if verdict != "again":
            absent = verdict == "absent" and not relevant
            return Label(query, tuple(relevant), tuple(judged), absent)


def _pages(searcher: Searcher, query: str, k: int) -> Iterator[list[Hit]]:
    """The hits of a query, so many at a time; no video twice, at least one page."""
    seen: set[Path] = set()
    while True:
        answer = searcher.search(query, k=len(seen) + k, per_video=1)
        page = [hit for hit in answer if hit.path not in seen][:k]
        if not answer.hits:
            raise SureshotError(" ".join(answer.warnings))
        if not page and seen:
            return
        yield page
        seen.update(path for hit in page for path in (hit.path, *hit.copies))
