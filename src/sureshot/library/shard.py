"""A share of a listing that several processes divide among themselves without talking."""

import re
from dataclasses import dataclass
from pathlib import Path

from sureshot.errors import ArgumentError, option
from sureshot.places import video_id

_FORM = re.compile(r"(\d{1,9})/(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Shard:
    """Which videos a process deals with: those whose path has a digest of its number.

    What else is listed does not matter, so a file that comes or goes moves no other to another
    process.

    Attributes:
        number: number of the share, from 1.
        of: how many shares there are; of one share all videos are.
    """

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """The share that a text such as ``3/16`` names.

        Raises:
            ArgumentError: it names none.

        Examples:
            >>> Shard.parse("3/16")
            Shard(number=3, of=16)
        """
        named = _FORM.fullmatch(text.strip())
        number, of = map(int, named.groups()) if named else (0, 0)
        if not 1 <= number <= of:
            raise ArgumentError(
                f"{text!r} is no share: with {option('shard', '3/16')} a process takes the third "
                f"of sixteen, so the first number is from 1 to the second."
            )
        return cls(number, of)

    def has(self, path: Path) -> bool:
        """Whether the video at an absolute path is of this share."""
        return self.of == 1 or int(video_id(path)[:12], 16) % self.of == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


WHOLE = Shard()
