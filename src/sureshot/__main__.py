"""``python -m sureshot`` and the ``sureshot`` command."""

import gc
import os
import sys


def main() -> None:
    """Run the command line; imports what the command needs, nothing more."""
    if os.name == "posix" and sys.getfilesystemencoding() != "utf-8":
        # Names of files would be others than under a locale of UTF-8, by which videos are known.
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    from sureshot.cli.app import catch_signals, exit_code, open_streams
    from sureshot.cli.terminal import drop_output

    open_streams()
    try:
        catch_signals()
        from sureshot.cli.app import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # before there was a command, or while its end was reported
        code = 130
    code = exit_code(code)
    drop_output()
    gc.freeze()  # or Python looks through all that was imported once more: a fifth of a search
    sys.exit(code)


if __name__ == "__main__":
    main()
