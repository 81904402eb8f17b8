"""``python -m sureshot`` and the ``sureshot`` command."""

import io
import sys


def main() -> None:
    """Run the command line; imports what the command needs, nothing more."""
    from sureshot.cli.app import run

    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a letter of a file name shows a question mark in its place.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
