"""Check a wheel: its size, its description, and that it works where nothing else is installed.

Usage: python -m tests.wheel dist/sureshot-0.1.0-py3-none-any.whl
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tests.clips import coloured

PYTHONS = ("python3.11", "python3.12", "python3.13")
LARGEST = 25e6  # bytes of the wheel
MOST = 900  # MB of an environment with nothing but the wheel


def main(wheel: Path) -> None:
    """Check it, and end with a sentence where something is wrong."""
    size = wheel.stat().st_size
    if size > LARGEST:
        sys.exit(f"{wheel} has {size / 1e6:.1f} MB, more than {LARGEST / 1e6:.0f}.")
    strangers = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    strangers = {name for name in strangers if name.partition("-")[0] != "sureshot"}
    if strangers:
        sys.exit(f"{wheel} would install {', '.join(sorted(strangers))}.")
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", str(wheel)], check=True)
    found = [python for python in PYTHONS if _runs(python)]
    for python in found:
        with tempfile.TemporaryDirectory() as folder:
            megabytes = try_in(Path(folder), python, wheel)
        print(f"{python}: installed alone ({megabytes} MB), indexed and searched a video.")
        if megabytes > MOST:
            sys.exit(f"That is more than {MOST} MB.")
    missing = [python for python in PYTHONS if python not in found]
    print(f"{wheel.name}: {size / 1e6:.1f} MB, sound.")
    if missing:
        print(f"Not tried, as they are not here: {', '.join(missing)}.")


def _runs(python: str) -> bool:
    """Whether there is such a Python; a launcher without one fails when it is run."""
    return (
        bool(shutil.which(python))
        and not subprocess.run([python, "-c", "import venv"], capture_output=True).returncode
    )


def try_in(folder: Path, python: str, wheel: Path) -> int:
    """Install a wheel into an empty environment, use it, and give the megabytes it takes."""
    place = folder / "environment"
    subprocess.run([python, "-m", "venv", "--without-pip", str(place)], check=True)
    inside = ["--python", str(place / "bin" / "python")]
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *inside]
    subprocess.run([*pip, "install", "--no-compile", str(wheel)], check=True)
    size = sum(path.lstat().st_blocks * 512 for path in place.rglob("*"))
    (folder / "videos").mkdir()
    coloured(folder / "videos" / "red.mp4", ["red"])
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    environment = kept | {"HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    for arguments, expected in (
        (("--version",), "sureshot "),
        (("index", "videos"), "1 indexed."),
        (("search", "a red wall", "-k", "1"), "red.mp4"),
        (("doctor",), "not installed (torch"),
    ):
        command = [str(place / "bin" / "sureshot"), *arguments]
        ran = subprocess.run(
            command, cwd=folder, env=environment, text=True, capture_output=True, check=False
        )
        if ran.returncode or expected not in ran.stdout:
            sys.exit(f"{python}: sureshot {' '.join(arguments)} failed:\n{ran.stdout}{ran.stderr}")
    return round(size / (1 << 20))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
