"""Hold the detector to public captures that cannot show a split.

`python -m benchmarks.validation.public_captures DIR...`

DIR is a git directory (bare or not: files come from its newest commit) or a plain directory. Every capture in it goes
through `inspect`, whose four-tuples and packet counts must be tshark's, and through `detect`, alone and in random
pairs: files of test suites have nothing to do with each other, and one capture alone seldom shows a split, so that
every verdict but inconclusive asks for an explanation. Each file is read in a process of its own; crashes and timeouts
are results. Nothing of the captures is kept.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import multiprocessing
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

#: First bytes of captures that `inspect` reads: pcap in both orders and units, also Kuznetzov's, and pcapng.
MAGIC = {
    bytes.fromhex(text) for text in ("d4c3b2a1", "a1b2c3d4", "4d3cb2a1", "a1b23c4d", "34cdb2a1", "a1b2cd34", "0a0d0d0a")
}  # fmt: skip
_GZIP, _ZSTD = b"\x1f\x8b", bytes.fromhex("28b52ffd")
_LARGEST_BYTES = 60_000_000
_FIELDS = ("frame.protocols", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "tcp.srcport", "tcp.dstport")
_TSHARK_SETTINGS = ("tcp.desegment_tcp_streams:FALSE", "tcp.try_heuristic_first:FALSE")

T = TypeVar("T")
Counts = dict[str, int]
#: Where it is from, its name there, and the file.
Found = tuple[str, str, Path]


@dataclass(slots=True)
class Row:
    """What became of one capture, or of one pair of captures."""

    origin: str
    name: str
    state: str = "ok"  # or refused (a CaptureError), crash, timeout
    detail: str = ""
    differences: list[str] = field(default_factory=list)
    verdicts: list[tuple[str, str]] = field(default_factory=list)  # verdict, sentence


def captures(directory: Path, scratch: Path) -> Iterator[tuple[str, Path]]:
    """Name and path of every distinct capture in a directory; those of git directories are written into `scratch`."""
    seen: set[bytes] = set()
    for name, read in _files(directory):
        data = read()
        digest = hashlib.sha256(data).digest()
        if digest in seen or not _is_capture(data):
            continue
        seen.add(digest)
        path = scratch / f"{len(seen):05d}-{Path(name).name}"
        path.write_bytes(data)
        yield name, path


def _is_capture(data: bytes) -> bool:
    if data[:2] == _GZIP:
        try:
            return gzip.decompress(data)[:4] in MAGIC
        except (OSError, EOFError):
            return False
    return data[:4] in MAGIC or (data[:4] == _ZSTD)


def _files(directory: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    git = directory if (directory / "objects").is_dir() else directory / ".git"
    if not git.is_dir():
        for path in sorted(directory.rglob("*")):
            if path.is_file() and path.stat().st_size <= _LARGEST_BYTES:
                yield str(path.relative_to(directory)), path.read_bytes
        return
    with subprocess.Popen(
        ["git", f"--git-dir={git}", "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as blobs:
        assert blobs.stdin is not None
        assert blobs.stdout is not None
        for name, blob in _tree(git):
            blobs.stdin.write(f"{blob}\n".encode())
            blobs.stdin.flush()
            kind = blobs.stdout.readline().split()
            if kind[1:2] != [b"blob"]:
                continue  # a snapshot may list what it does not hold
            data = blobs.stdout.read(int(kind[2]) + 1)[:-1]
            yield name, lambda data=data: data  # type: ignore[misc]
        blobs.stdin.close()


def _tree(git: Path) -> Iterator[tuple[str, str]]:
    """Path and blob of the files of the newest commit that are not too large."""
    command = ["git", f"--git-dir={git}", "ls-tree", "-r", "-l", "-z", "HEAD"]
    for entry in subprocess.run(command, check=True, capture_output=True).stdout.decode(errors="replace").split("\0"):
        head, _, name = entry.partition("\t")
        words = head.split()
        if len(words) == 4 and words[1] == "blob" and words[3].isdigit() and 24 <= int(words[3]) <= _LARGEST_BYTES:
            yield name, words[2]


def inspected(path: str) -> Counts:
    """TCP packets by four-tuple, as `inspect` counts them."""
    from pepscope.captures.capture import open_capture

    counts: Counter[str] = Counter()
    for connection in open_capture(path, payload=False, columns=False).connections:
        counts[_tuple_name(connection.client, connection.server)] += connection.packets
    return counts


def seen_by_tshark(path: str) -> Counts:
    """TCP packets by four-tuple of the innermost headers, as tshark counts them."""
    command = ["tshark", "-n", "-r", path, "-Y", "tcp && !icmp && !icmpv6", "-T", "fields", "-E", "occurrence=l"]
    for setting in _TSHARK_SETTINGS:
        command += ["-o", setting]
    for name in _FIELDS:
        command += ["-e", name]
    counts: Counter[str] = Counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    for line in done.stdout.splitlines():
        protocols, *addresses = line.split("\t")
        layers = [layer for layer in protocols.split(":") if layer in ("ip", "ipv6", "tcp")]
        if "tcp" not in layers or not addresses[4]:
            continue
        version_6 = layers[layers.index("tcp") - 1 if layers[0] != "tcp" else 0] == "ipv6"
        source, destination = addresses[2:4] if version_6 else addresses[:2]
        form = "[{}]:{}" if version_6 else "{}:{}"
        ends = [form.format(*end) for end in zip((source, destination), addresses[4:6], strict=True)]
        counts[_tuple_name(*ends)] += 1
    return counts


def _tuple_name(one: str, two: str) -> str:
    return " <> ".join(sorted((one, two)))


def differences(ours: Counts, theirs: Counts) -> list[str]:
    """Four-tuples whose packet counts differ, in words."""
    return [
        f"{name}: {ours.get(name, 0)} packets, tshark {theirs.get(name, 0)}"
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name, 0) != theirs.get(name, 0)
    ]


def detected(paths: list[str]) -> list[tuple[str, str]]:
    """Every verdict on a connection that is not inconclusive, and every split of a network and port, with its
    sentence."""
    import pepscope

    result = pepscope.detect(*paths)
    of_connections = [
        (str(pair.verdict), f"{' / '.join(f'{v.client} > {v.server}' for v in pair.vantages)}: {pair.reason}")
        for pair in result.pairs
        if pair.verdict != "inconclusive"
    ]
    return of_connections + [
        (str(group.verdict), f"{group.network} port {group.port}, {group.side}: {group.reason}")
        for group in result.groups
        if group.verdict.is_split
    ]


def _answer(task: str, paths: list[str], pipe: Any) -> None:
    """Do one task in a process of its own and send what came of it."""
    from pepscope.errors import CaptureError

    try:
        done = inspected(paths[0]) if task == "inspect" else detected(paths)
        pipe.send(("ok", done))
    except CaptureError as error:
        pipe.send(("refused", str(error)))
    except BaseException as error:
        pipe.send(("crash", f"{type(error).__name__}: {error}"))


def isolated(task: str, paths: list[str], timeout_s: float) -> tuple[str, Any]:
    """State (`ok`, `refused`, `crash`, `timeout`) and result of `inspect` or `detect`."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["detector.detection"])
    ours, others = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(task, paths, others))
    process.start()
    others.close()
    try:
        if not ours.poll(timeout_s):
            return "timeout", f"no answer within {timeout_s:.0f} s"
        return ours.recv()  # type: ignore[no-any-return]
    except EOFError:
        process.join()
        return "crash", f"ended with status {process.exitcode}"
    finally:
        process.kill()
        process.join()


def _examined(capture: Found, timeout_s: float) -> tuple[Row, Row]:
    """A capture through `inspect` and through `detect`."""
    origin, name, path = capture
    inspection, detection = Row(origin, name), Row(origin, name)
    inspection.state, found = isolated("inspect", [str(path)], timeout_s)
    theirs = seen_by_tshark(str(path))
    if inspection.state in ("ok", "refused"):
        inspection.differences = differences(found if inspection.state == "ok" else {}, theirs)
    if inspection.state != "ok":
        inspection.detail = str(found)
    detection.state, found = isolated("detect", [str(path)], timeout_s)
    if detection.state == "ok":
        detection.verdicts = found
    else:
        detection.detail = str(found)
    return inspection, detection


def _paired(couple: tuple[str, Found, Found], timeout_s: float) -> Row:
    kind, one, two = couple
    row = Row(kind, f"{one[0]}/{one[1]} with {two[0]}/{two[1]}")
    row.state, found = isolated("detect", [str(one[2]), str(two[2])], timeout_s)
    if row.state == "ok":
        row.verdicts = found
    else:
        row.detail = str(found)
    return row


def report(inspections: list[Row], detections: list[Row]) -> str:
    """Tables, and everything that asks for an explanation."""
    lines = ["| captures | files | with TCP | as tshark | differ | crash | timeout |", "|---|" + "---:|" * 6]
    for origin in dict.fromkeys(row.origin for row in inspections):
        here = [row for row in inspections if row.origin == origin]
        states = Counter(row.state for row in here)
        differ = sum(bool(row.differences) for row in here)
        tcp = [row for row in here if row.state == "ok"]
        agree = sum(not row.differences for row in tcp)
        numbers = (len(here), len(tcp), agree, differ, states["crash"], states["timeout"])
        lines.append(f"| {origin} | " + " | ".join(map(str, numbers)) + " |")
    kinds = ("regular", "split-tcp", "tcp-proxy")
    lines += ["", f"| detect | judged | refused | {' | '.join(kinds)} | crash | timeout |", "|---|" + "---:|" * 7]
    for origin in dict.fromkeys(row.origin for row in detections):
        here = [row for row in detections if row.origin == origin]
        states = Counter(row.state for row in here)
        verdicts = Counter(verdict for row in here for verdict, _ in row.verdicts)
        judged = (states["ok"], states["refused"], *(verdicts[k] for k in kinds), states["crash"], states["timeout"])
        lines.append(f"| {origin} | " + " | ".join(map(str, judged)) + " |")
    lines += ["", "## inspect and tshark differ", ""]
    lines += [f"- {row.origin}/{row.name}: {'; '.join(row.differences[:4])}" for row in inspections if row.differences]
    lines += ["", "## Crashes and timeouts", ""]
    failed = [row for row in (*inspections, *detections) if row.state in ("crash", "timeout")]
    lines += [f"- {row.state}: {row.origin}/{row.name}: {row.detail}" for row in failed]
    lines += ["", "## Verdicts that are not inconclusive", ""]
    for row in detections:
        lines += [f"- {row.origin}/{row.name}: **{verdict}**: {sentence}" for verdict, sentence in row.verdicts]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Examine, print the report, and fail on a difference, a crash or a verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directories", type=Path, nargs="+", help="git directories or plain ones")
    parser.add_argument(
        "--pairs", type=int, default=1000, help="random pairs from everywhere, and as many from one folder"
    )
    parser.add_argument("--seed", default="1", help="what pairs are drawn from")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for each file or pair")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=int, help="only so many captures of each directory, evenly drawn")
    parser.add_argument("-o", "--output", type=Path, help="also write the report here, and all rows beside it as JSON")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pepscope-public-") as scratch, ThreadPoolExecutor(chosen.jobs) as pool:
        found = _all_captures(chosen.directories, Path(scratch), chosen.limit)
        examined = list(_counted(pool.map(lambda one: _examined(one, chosen.timeout), found), len(found), "captures"))
        inspections, detections = ([rows[place] for rows in examined] for place in (0, 1))
        with_tcp = [one for one, row in zip(found, inspections, strict=True) if row.state == "ok"]
        couples = list(_couples(with_tcp, chosen.pairs, random.Random(chosen.seed)))
        judged = pool.map(lambda couple: _paired(couple, chosen.timeout), couples)
        detections += list(_counted(judged, len(couples), "pairs"))
    text = report(inspections, detections)
    print(text)
    if chosen.output is not None:
        chosen.output.write_text(text)
        rows = [{name: getattr(row, name) for name in row.__slots__} for row in (*inspections, *detections)]
        chosen.output.with_suffix(".json").write_text(json.dumps(rows, indent=1))
    wrong = [row for row in (*inspections, *detections) if row.differences or row.verdicts]
    return int(bool(wrong) or any(row.state in ("crash", "timeout") for row in (*inspections, *detections)))


def _couples(found: list[Found], count: int, chance: random.Random) -> Iterator[tuple[str, Found, Found]]:
    """Random pairs from everywhere, and as many from one folder, where test cases resemble each other."""
    folders: dict[tuple[str, str], list[Found]] = {}
    for one in found:
        folders.setdefault((one[0], str(Path(one[1]).parent)), []).append(one)
    alike = [group for group in folders.values() if len(group) > 1]
    for kind, groups in (("random pairs", [found] if len(found) > 1 else []), ("pairs from one folder", alike)):
        for _ in range(count if groups else 0):
            one, two = chance.sample(chance.choice(groups), 2)
            yield kind, one, two


def _counted(results: Iterable[T], count: int, what: str) -> Iterator[T]:
    """The results as they come, their number on standard error."""
    for number, result in enumerate(results, 1):
        if number % 100 == 0 or number == count:
            print(f"{number} of {count} {what}", file=sys.stderr, flush=True)
        yield result


def _all_captures(directories: list[Path], scratch: Path, limit: int | None) -> list[Found]:
    found = []
    for directory in directories:
        place = scratch / str(len(list(scratch.iterdir())))
        place.mkdir()
        origin = directory.parent.name if directory.name in ("repo", ".git") else directory.name
        here = [(origin, name, path) for name, path in captures(directory, place)]
        step = max(len(here) / limit, 1.0) if limit else 1.0
        found += [here[int(number * step)] for number in range(int(len(here) / step))]
    return found


if __name__ == "__main__":
    sys.exit(main())
