"""Labels of captures that the project makes, as a `manifest.csv` that `pepscope validate` reads.

    python -m benchmarks.validation.labels DIR...

A directory of `benchmarks.fresh` (or `tests/corpus`) has a `manifest.json`; one of `benchmarks.one_ended` or
`benchmarks.one_ended_simulated` has networks with a `truth.json` each. Both get one row a connection or group.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.one_ended_score.truths import GroupTruth, read_truths
from detector.corpora.validation.manifest import COLUMNS, FACTOR_PREFIX, MANIFEST
from pepscope.whole_file import write_whole

_CLASSES = {"regular": "regular", "split": "split-tcp", "proxy": "tcp-proxy"}
Row = dict[str, object]


def rows(directory: Path) -> Iterator[Row]:
    """The labels of a directory of either form."""
    if (directory / "manifest.json").is_file():
        for run in json.loads((directory / "manifest.json").read_text(encoding="utf-8"))["runs"]:
            for flow in run["flows"]:
                yield _of_flow(run, flow)
        return
    for path in sorted(directory.rglob("truth.json")):
        for file, truths in read_truths(path.parent).items():
            for truth in truths:
                # Where some hosts are split and some are not, only the rows of single hosts are true or false.
                if truth.whole:
                    yield _of_group(str(path.parent.relative_to(directory) / file), truth)


def _of_flow(run: Mapping[str, Any], flow: Mapping[str, Any]) -> Row:
    """A connection as both ends' captures show it; one that a middlebox answered itself is in one capture only."""
    ends = {letter: str(flow.get(f"{end}_capture") or " > ").split(" > ") for letter, end in _ENDS.items()}
    kinds = [_CLASSES[kind] for kind in flow["acceptable_kinds"] if kind in _CLASSES]
    return {
        "run": run["id"],
        **{f"capture_{letter}": run["files"][end]["name"] for letter, end in _ENDS.items()},
        **{f"client_{letter}": _bracketed(client) for letter, (client, _) in ends.items()},
        **{f"server_{letter}": _bracketed(server) for letter, (_, server) in ends.items()},
        "truth": _CLASSES[flow["class"]],
        "accepted": " ".join(kinds),
        **_circumstances(run, flow),
    }


_ENDS = {"a": "server", "b": "mobile"}


def _bracketed(end: str) -> str:
    address, _, port = end.rpartition(":")
    return f"[{address.strip('[]')}]:{port}" if ":" in address else end


def _circumstances(run: Mapping[str, Any], flow: Mapping[str, Any]) -> Row:
    clock, links = run["clock"], run.get("links") or {}
    wired, cell = (links.get(name, {}).get("delay_ms") for name in ("wired_server_to_proxy", "cell_proxy_to_mobile"))
    losses = [link.get("loss") or 0 for link in links.values() if isinstance(link, dict)]
    snaps = [file["snaplen"] for file in run["files"].values() if file.get("snaplen")]
    size = flow.get("bytes", sum(flow.get(f"mobile_bytes_{way}") or 0 for way in ("up", "down")))
    changes = [change["op"] for change in run.get("variant") or ()]
    found = {
        "direction": flow.get("direction"),
        "size_bytes": size,
        "mechanism": flow.get("mechanism"),
        "software": run.get("proxy_software"),
        "snap_length_bytes": min(snaps) if snaps else None,
        "drift_ppm": clock.get("mobile_skew_ppm"),
        "clock_offset_s": clock.get("mobile_offset_s"),
        "leg_ratio": round(wired / cell, 3) if wired and cell else None,
        "loss_percent": 100 * max(losses) if losses else None,
        "capture_change": " and ".join(dict.fromkeys(changes)) or "none",
    }
    return {f"{FACTOR_PREFIX}{name}": value for name, value in found.items() if value is not None}


def _of_group(capture: str, truth: GroupTruth) -> Row:
    hidden_s = None if truth.hidden_s is None else truth.hidden_s[1]
    found = {
        "access": truth.access, "middle": truth.middle, "mechanism": truth.mechanism, "exchanges": truth.exchanges,
        "hidden_leg_s": hidden_s, "near_leg_s": truth.near_s,
        "leg_ratio": round(hidden_s / truth.near_s, 3) if hidden_s is not None and truth.near_s else None,
        "thinks": "yes" if truth.thinks else "no", "begins_late": "yes" if truth.cut else "no",
    }  # fmt: skip
    return {
        "capture_a": capture, "side": truth.side, "network": truth.prefix, "port": truth.port, "host": truth.host or "",
        "truth": "split-tcp" if truth.is_split else "regular",
        # One capture does not show whether a split stores.
        "accepted": "split-tcp tcp-proxy" if truth.is_split else "",
        "where": (truth.where or "") if truth.is_split else "",
        **{f"{FACTOR_PREFIX}{name}": value for name, value in found.items() if value is not None},
    }  # fmt: skip


def manifest(directory: Path) -> str:
    """The manifest as CSV, with the columns that any row has."""
    made = list(rows(directory))
    used = {name for row in made for name, value in row.items() if value not in ("", None)}
    factors = dict.fromkeys(name for row in made for name in row if name not in COLUMNS)
    stream = io.StringIO()
    writer = csv.DictWriter(
        stream, [name for name in (*COLUMNS, *factors) if name in used], extrasaction="ignore", lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(made)
    return stream.getvalue()


def write_labels(directory: Path) -> None:
    """Write the manifest of a directory beside its captures."""
    write_whole(directory / MANIFEST, manifest(directory))


def main() -> None:
    """Write the labels of directories that were made before."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directories", type=Path, nargs="+")
    for directory in parser.parse_args().directories:
        write_labels(directory)


if __name__ == "__main__":
    main()
