"""What the page costs beside the bare search: ``python -m benchmarks.serving [VIDEOS]``.

A folder of videos (the sample clips of `make demo` if left out) is indexed with the bundled model
and served. Measured are bytes and time of the first page, the time until a hit shows a picture, and
searches of 20 clients at once, alone and while films are transcoded, with the processor's time that
the server takes for each. Times are also ratios to the search in the same process without a server.
The clients are threads of this process that keep their connections. It asks this machine alone, for
about a minute.
"""

import contextlib
import http.client
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import sureshot

CLIPS = Path(__file__).parent.parent / ".cache" / "demo" / "clips"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as `sureshot serve` does, for a fair ratio
WHO = ("people", "a cartoon rabbit", "a man", "two children", "a dog", "an old woman", "a crowd")
WHAT = ("riding bicycles", "in a car", "seen from above", "dancing", "cooking", "near the water")
WHERE = ("on a street", "at night", "in the snow", "in a kitchen", "in a park")
CLIENTS = 20
SECONDS = 5.0  # of each load
WANTED = 50.0  # searches a second that the clients ask for together
FILES = ("", "page.css", "page.js", "icon.svg")


def main() -> None:
    """Index, serve, measure, print."""
    videos = Path(sys.argv[1]) if len(sys.argv) > 1 else CLIPS
    print("load of this machine           ", *(f"{load:.1f}" for load in os.getloadavg()))
    with tempfile.TemporaryDirectory() as folder:
        db = str(Path(folder, "index"))
        sureshot.index(videos, db=db)
        bare = _bare(db)
        print(f"bare search                    {bare * 1e3:7.1f} ms")
        with _served(db, folder) as (address, server):
            _get(address + "api/search?q=warm")
            _first_page(address, bare)
            _first_picture(address, bare)
            _load(address, server, bare, "20 clients")
            with _transcoding(address):
                _load(address, server, bare, "while transcoding")


def _bare(db: str) -> float:
    """Seconds of a search without a server, the median of many."""
    searcher = sureshot.open_index(db)
    searcher.search("warm")
    return statistics.median(
        _timed(partial(searcher.search, _query(number))) for number in range(40)
    )


@contextlib.contextmanager
def _served(db: str, home: str) -> Iterator[tuple[str, int]]:
    """The address of a server, and the id of its process."""
    command = [sys.executable, "-m", "sureshot", "serve", "--no-token", "--port", "0", "--db", db]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"XDG_CACHE_HOME": home},  # nothing is there from before
    )
    assert process.stderr is not None
    try:
        yield process.stderr.readline().split()[3], process.pid
    finally:
        process.terminate()
        process.wait()


def _first_page(address: str, bare: float) -> None:
    def load() -> int:
        return sum(len(_get(address + file)) for file in FILES)

    size = load()
    seconds = statistics.median(_timed(load) for _ in range(20))
    print(f"first page                     {_beside(seconds, bare)}   {size / 1000:.0f} kB")


def _first_picture(address: str, bare: float) -> None:
    """From a click on 10 s to the first bytes of the film, of each video once."""
    times: dict[str, list[float]] = {}
    for video in json.loads(_get(address + "api/videos?limit=500"))["videos"]:
        if not video["windows"]:
            continue
        at = video["seconds"] / 2
        asked = f"at={at}&start={max(at - 5, 0)}&end={min(at + 5, video['seconds'])}"
        began = time.perf_counter()
        told = json.loads(_get(f"{address}api/playing/{video['id']}?{asked}"))
        seen = told["first"] or told
        _get(address.rstrip("/") + seen["url"], {"Range": "bytes=0-99999"})
        way = told["way"] + (", first seconds" if told["first"] else "")
        times.setdefault(way, []).append(time.perf_counter() - began)
        if told["first"]:
            _get(address.rstrip("/") + told["url"], {"Range": "bytes=0-99999"})
            times.setdefault("clip, whole", []).append(time.perf_counter() - began)
    for way, taken in sorted(times.items()):
        worst = f"slowest of {len(taken)}: {max(taken) * 1e3:.0f} ms"
        print(f"first picture, {way:<19} {_beside(statistics.median(taken), bare)}   {worst}")


def _load(address: str, server: int, bare: float, name: str) -> None:
    """Clients that together ask 50 times a second, each as often as the others."""
    taken: list[float] = []
    failed: list[str] = []
    asked = itertools.count(1000 * len(name))  # sentences that this server has not met yet
    where = urllib.parse.urlsplit(address).netloc
    busy = _busy(server)
    began = time.perf_counter()

    def client(number: int) -> None:
        turn = number / WANTED
        with contextlib.closing(http.client.HTTPConnection(where, timeout=120)) as connection:
            while turn < SECONDS:
                time.sleep(max(0.0, began + turn - time.perf_counter()))
                query = urllib.parse.quote(_query(next(asked)))
                try:
                    taken.append(_timed(partial(_ask, connection, f"/api/search?q={query}")))
                except (http.client.HTTPException, OSError) as error:
                    failed.append(str(error))
                turn += CLIENTS / WANTED

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rate = len(taken) / (time.perf_counter() - began)
    slow = statistics.quantiles(taken, n=20)[-1]
    each = 1e3 * (_busy(server) - busy) / len(taken)
    print(
        f"{name:<30} {_beside(statistics.median(taken), bare)}   {rate:.1f} a second, "
        f"95 % below {slow * 1e3:.0f} ms, {len(failed)} errors, {each:.0f} ms of a core each"
    )


def _ask(connection: http.client.HTTPConnection, path: str) -> None:
    connection.request("GET", path)
    reply = connection.getresponse()
    reply.read()
    if reply.status != 200:
        raise http.client.HTTPException(f"status {reply.status}")


def _busy(process: int) -> float:
    """Seconds of processors that a process has taken, where the system says so; else 0."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def _transcoding(address: str) -> Iterator[None]:
    """Moments being cut out all the while, each another one."""
    videos = json.loads(_get(address + "api/videos?limit=500"))["videos"]
    ended = threading.Event()

    def work() -> None:
        turn = 0
        while not ended.is_set():
            video = videos[turn % len(videos)]
            turn += 1
            end = video["seconds"] - 0.001 * turn
            with contextlib.suppress(urllib.error.URLError, OSError):
                _get(f"{address}api/cut/{video['id']}?start=0&end={end}")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _query(number: int) -> str:
    """A sentence that differs from those of other numbers."""
    chosen = []
    for words in (WHO, WHAT, WHERE):
        number, place = divmod(number, len(words))
        chosen.append(words[place])
    return " ".join([*chosen, *([str(number)] if number else [])])


def _get(address: str, headers: dict[str, str] | None = None) -> bytes:
    asked = urllib.request.Request(address, headers=headers or {})
    with urllib.request.urlopen(asked, timeout=120) as reply:
        return bytes(reply.read())


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _beside(seconds: float, bare: float) -> str:
    return f"{seconds * 1e3:7.1f} ms  {seconds / bare:5.2f} searches"


if __name__ == "__main__":
    main()
