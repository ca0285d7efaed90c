"""A corpus with broken captures, judged while workers are killed: the same tables as by one process without kills?

    python -m benchmarks.speed.corpora_kills [--captures 1000] [--seed 1] [--work DIR] [--again]

The corpus is the real captures of `tests/corpus`, web traffic cut into captures, and simulated pairs (both ends of one
connection, each pair in hours of its own); one in twenty is broken. Judged are it by one process; by two, of which one
is killed every few seconds and the whole run twice; and by a Dask cluster whose workers are killed and whose scheduler
is killed once and started again. The tables must be equal, and the status is 1 where they are not.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

from benchmarks.speed.captures import WORK
from benchmarks.speed.corpora import split
from benchmarks.speed.web_capture import make_web
from pepscope import simulate
from reference_sim.library import campaign_path
from reference_sim.sweep import Campaign
from tests.captures.containers import read_capture, write_pcap
from tests.pepscope.processes.clusters import Cluster

_REAL = Path(__file__).parents[2] / "tests" / "corpus"
_HOUR_NS = 3_600 * 10**9
_WEB_PACKETS = 1_000
_TABLES = ("connections", "groups", "captures.parquet", "errors.parquet")
_BREAKS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    lambda content, _: content[:0],
    lambda content, _: content[:20],
    lambda content, draw: content[: draw.randrange(100, max(len(content), 200))],
    lambda content, draw: draw.randbytes(len(content)),
    lambda content, draw: content[:4] + draw.randbytes(20) + content[24:],
    lambda content, draw: _overwritten(content, draw),
)


def _overwritten(content: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(24, max(len(content) - 500, 25))
    return content[:at] + draw.randbytes(400) + content[at + 400 :]


def _simulated(job: tuple[int, Path]) -> None:
    """Both ends of one run, in hours of their own: simulated clocks all start alike."""
    number, folder = job
    points = list(Campaign.from_toml(campaign_path("detector-validation")).points())
    point = points[number % len(points)]
    with tempfile.TemporaryDirectory() as scratch:
        simulate(point.scenario, scratch, seed=point.scenario.seed + number)
        for path in sorted(Path(scratch).glob("*.pcapng*")):
            capture = read_capture(path)
            frames = [replace(frame, time_ns=frame.time_ns + 2 * number * _HOUR_NS) for frame in capture.frames]
            target = folder / f"{path.name.split('.')[0]}.pcap"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(write_pcap(frames, capture.link_type))


def make_corpus(directory: Path, captures: int, draw: random.Random) -> dict[str, int]:
    """So many captures below `directory`; gives how many of each kind, and how many are broken."""
    real = sorted(_REAL.glob("*.pcap.gz"))[: captures // 4]
    (directory / "real").mkdir(parents=True)
    for path in real:
        shutil.copy(path, directory / "real")
    pairs = (captures - len(real)) // 4
    with ProcessPoolExecutor() as pool:
        list(pool.map(_simulated, [(number, directory / "simulated" / str(number)) for number in range(pairs)]))
    simulated = len(list((directory / "simulated").rglob("*.pcap")))
    web = captures - len(real) - simulated
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        whole = make_web(Path(scratch), (web + 2) * _WEB_PACKETS, (web + 2) * _WEB_PACKETS // 21)
        split(whole, _WEB_PACKETS, directory / "web")
    for surplus in sorted((directory / "web").iterdir())[web:]:
        shutil.rmtree(surplus)
    every = sorted(path for path in directory.rglob("*") if path.is_file())
    broken = draw.sample(every, len(every) // 20)
    for number, path in enumerate(broken):
        path.write_bytes(_BREAKS[number % len(_BREAKS)](path.read_bytes(), draw))
    return {"real": len(real), "simulated": simulated, "web": web, "of them broken": len(broken)}


def _audit(source: Path, output: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pepscope", "audit-captures", str(source), "-o", str(output), "--json", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def _finished(run: subprocess.Popen[bytes]) -> dict[str, Any]:
    output = run.communicate()[0]
    assert run.returncode == 0, f"status {run.returncode}"
    return dict(json.loads(output))


def _with_killed_processes(source: Path, output: Path, draw: random.Random, every_s: float) -> dict[str, Any]:
    """Workers are killed one by one; the first two runs are killed whole."""
    workers, runs = 0, 2
    for whole_at_s in (8 * every_s, 8 * every_s, None):
        run, started = _audit(source, output, "--jobs", "2"), time.monotonic()
        while run.poll() is None and (whole_at_s is None or time.monotonic() - started < whole_at_s):
            time.sleep(every_s * draw.uniform(0.5, 1.5))
            # The fork server's children do the work.
            found = [each for each in _descendants(run.pid) if each.ppid() != run.pid]
            if found and run.poll() is None:
                draw.choice(found).kill()
                workers += 1
        if whole_at_s is None:
            return {"killed workers": workers, "killed runs": runs, **_finished(run)}
        run.kill()
        run.communicate()
    raise AssertionError


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        children: list[psutil.Process] = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return children


def _with_killed_cluster(source: Path, output: Path, draw: random.Random, every_s: float) -> dict[str, Any]:
    """Two workers, each replaced when it is killed, and a scheduler that dies once, early."""
    cluster = Cluster(failures=3)
    killed, at_once = 0, 2
    try:
        cluster.start_scheduler()
        workers = [cluster.start_worker() for _ in range(at_once)]
        run = _audit(source, output, "--scheduler", cluster.address, "--patience", "120")
        scheduler_died = False
        while run.poll() is None:
            time.sleep(every_s * draw.uniform(2, 4))
            if not scheduler_died and len(list((output / "units").glob("*.json"))) > 20:
                cluster.stop()
                cluster.start_scheduler()
                workers, scheduler_died = [cluster.start_worker() for _ in range(at_once)], True
            elif run.poll() is None:
                victim = draw.randrange(at_once)
                workers[victim].kill()
                workers[victim].wait()
                workers[victim] = cluster.start_worker()
                killed += 1
        return {"killed workers": killed, "killed schedulers": int(scheduler_died), **_finished(run)}
    finally:
        cluster.stop()


def _table(directory: Path, name: str) -> pd.DataFrame:
    place = directory / name
    paths = [place] if place.is_file() else sorted(place.rglob("*.parquet"))
    frame = pd.concat([pd.read_parquet(path) for path in paths], ignore_index=True)
    return frame.sort_values(list(frame.columns), key=lambda column: column.astype(str)).reset_index(drop=True)


def _differences(one: Path, other: Path) -> dict[str, str]:
    """By table: equal with how many rows, or not."""
    found = {}
    for name in _TABLES:
        mine, theirs = _table(one, name), _table(other, name)
        found[name] = f"{len(mine):,} rows, equal" if mine.equals(theirs) else f"{len(mine):,}, {len(theirs):,}: DIFFER"
    return found


def main() -> int:
    """Make, judge three times, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captures", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=1.0, metavar="SECONDS", help="between kills of workers")
    parser.add_argument("--again", action="store_true", help="with the captures that a run before made")
    parser.add_argument("--work", type=Path, default=WORK / "corpora_kills")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    source, plain = options.work / "captures", options.work / "one process"
    if not options.again:
        shutil.rmtree(options.work, ignore_errors=True)
        source.mkdir(parents=True)
        print(f"corpus: {make_corpus(source, options.captures, draw)}", flush=True)
    shutil.rmtree(plain, ignore_errors=True)
    _finished(_audit(source, plain, "--jobs", "1"))
    ways = {"killed processes": _with_killed_processes, "killed cluster": _with_killed_cluster}
    status = 0
    for name, judged in ways.items():
        output = options.work / name
        shutil.rmtree(output, ignore_errors=True)
        summary = judged(source, output, draw, options.every)
        told = {
            key: summary[key]
            for key in summary
            if key.startswith("killed") or key in ("units", "pairs", "resumed", "blamed")
        }
        differences = _differences(plain, output)
        print(f"{name}: {told}\n    {differences}", flush=True)
        status |= int(any("DIFFER" in each for each in differences.values()))
    return status


if __name__ == "__main__":
    raise SystemExit(main())
