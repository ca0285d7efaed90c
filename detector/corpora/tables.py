"""The tables of a corpus: every connection a row, partitioned by day and network, and written whole or not at all."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

import pepscope
from detector.corpora.matching import Unit
from pepscope.errors import UsageError
from pepscope.results.frames import detection_frame, groups_frame
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import Outcome
from pepscope.whole_file import whole_file

if TYPE_CHECKING:
    import pandas as pd

    from detector.corpora.sources import Failure
    from detector.corpora.survey import Survey
    from pepscope.results.verdicts import DetectionResult

CONNECTIONS, GROUPS, UNITS = "connections", "groups", "units"
CAPTURES_FILE, ERRORS_FILE = "captures.parquet", "errors.parquet"

#: The name of the network of captures of which no manifest says one.
UNNAMED = "unnamed"
#: The day of connections whose capture gives no time.
NO_DAY = "unknown"

_CAPTURE_COLUMNS = (
    "capture", "digest", "size_bytes", "packets", "connections", "first_ns", "last_ns", "warnings", "vantage",
    "network", "operator", "notes",
)  # fmt: skip
_PORT = re.compile(r":(\d+)$")
#: What says that a directory holds tables, and in which form; raise the form where columns change.
IDENTITY_FILE = "corpus.json"
IDENTITY = {"form": 2, "version": pepscope.__version__}

#: What methods say of a connection, by the column that names those that say it.
_SAID = {"methods_split": Outcome.SPLIT, "methods_intact": Outcome.INTACT}

_OF_GROUP = ("network", "verdict", "where", "near_round_trip_s", "hidden_round_trip_s")


def is_held(directory: Path) -> bool:
    """Whether a directory holds tables of this version. Raises UsageError for those of another one, OSError, and
    ValueError for a file that is not JSON."""
    path = directory / IDENTITY_FILE
    if not path.is_file():
        return False
    held = json.loads(path.read_text(encoding="utf-8"))
    if held != IDENTITY:
        version = held.get("version", "unknown") if isinstance(held, dict) else "unknown"
        form = " in an earlier form" if version == pepscope.__version__ else ""
        raise UsageError(
            f"{directory} holds tables of pepscope {version}{form}, this is {pepscope.__version__}: judge the captures "
            "into another directory"
        )
    return True


def write_unit(result: DetectionResult, unit: Unit, identity: str, directory: Path) -> dict[str, Any]:
    """Write a unit's connections and groups, and return counts of verdicts."""
    connections = _connections(result, unit, identity)
    files: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row, (day, network) in enumerate(zip(connections["day"], connections["network"], strict=True)):
        files[day, network].append(row)
    for (day, network), rows in files.items():
        folder = directory / CONNECTIONS / f"day={day}" / f"network={quote(network, safe='')}"
        _write(connections.iloc[rows].drop(columns=["day", "network"]), folder / f"{identity}.parquet")
    groups = groups_frame(result).reset_index().assign(unit=identity)
    if len(groups):
        _write(groups, directory / GROUPS / f"{identity}.parquet")
    counts = connections["verdict"].value_counts().to_dict()
    return {"connections": len(connections), "groups": len(groups), **{str(name): int(n) for name, n in counts.items()}}


def _connections(result: DetectionResult, unit: Unit, identity: str) -> pd.DataFrame:
    import pandas as pd

    # The table of captures has their digests.
    made_with = ["sha256_a", "sha256_b", "version", "options"]
    frame = detection_frame(result).drop(columns=made_with).reset_index(drop=True)
    started = pd.to_datetime(frame["started"], utc=True, errors="coerce", format="ISO8601")
    frame["started"] = started.astype("datetime64[us, UTC]")
    frame["started_ns"] = started.astype("datetime64[ns, UTC]").astype("int64").where(started.notna(), -1)
    frame["day"] = started.dt.strftime("%Y-%m-%d").fillna(NO_DAY)
    frame["network"] = unit.network or UNNAMED
    frame["unit"] = identity
    for letter, series in zip("ab", (*unit.series, None), strict=False):
        name = None if series is None else series.name
        frame[f"capture_{letter}"] = [name if there else None for there in frame[f"capture_{letter}"].notna()]
    both = frame["server_a"].fillna(frame["server_b"])
    frame["port"] = [int(found[1]) if (found := _PORT.search(server)) else 0 for server in both]
    for name, outcome in _SAID.items():
        frame[name] = list(_methods(result, outcome))
    return _with_groups(frame, result)


def _methods(result: DetectionResult, outcome: Outcome) -> Iterator[str]:
    """Of each connection the names of the methods that say so, with spaces between."""
    pairs = PairTable.of(result.pairs)
    for place in range(len(pairs)):
        yield " ".join(sorted({form.method for form in pairs.forms(place) if form.outcome is outcome}))


def _with_groups(frame: pd.DataFrame, result: DetectionResult) -> pd.DataFrame:
    """What the group of each connection is judged; where it is in two, by the first."""
    values: dict[str, list[Any]] = {name: [None] * len(frame) for name in _OF_GROUP}
    for group in reversed(result.groups):
        for place in group.pairs:
            for name in _OF_GROUP:
                value = getattr(group, name)
                values[name][place] = getattr(value, "value", value)
    for name, column in values.items():
        kind = "float64" if name.endswith("_s") else "object"
        frame["client_network" if name == "network" else f"group_{name}"] = np.asarray(column, kind)
    return frame


def remove_unit(identity: str, directory: Path) -> None:
    """Take a unit out of the tables."""
    for path in (*(directory / CONNECTIONS).rglob(f"{identity}.parquet"), directory / GROUPS / f"{identity}.parquet"):
        path.unlink(missing_ok=True)


def write_captures(surveys: Sequence[Survey], units: Sequence[Unit], directory: Path) -> None:
    """Write the table of files: what each holds, and what its labels are. Files of earlier runs stay, unless they are
    there again with the same content or under the same name."""
    import pandas as pd

    labels = {part.digest: series.labels for unit in units for series in unit.series for part in series.files}
    rows = [
        {
            "capture": each.file.name, "digest": each.digest, "size_bytes": each.size_bytes, "packets": each.packets,
            "connections": each.connections, "first_ns": each.first_ns, "last_ns": each.last_ns,
            "warnings": each.warnings,
            **(asdict(labels[each.digest]) if each.digest in labels else {}),
        }
        for each in surveys
    ]  # fmt: skip
    frame, path = pd.DataFrame(rows, columns=_CAPTURE_COLUMNS), directory / CAPTURES_FILE
    if path.is_file():
        earlier = pd.read_parquet(path)
        digests, names = ({row[name] for row in rows} for name in ("digest", "capture"))
        gone = earlier[~earlier["digest"].isin(digests) & ~earlier["capture"].isin(names)]
        frame = pd.concat([gone, frame], ignore_index=True) if len(gone) else frame
    _write(frame, path)


def write_errors(failures: Sequence[Failure], directory: Path) -> None:
    """Write the table of what could not be read or judged; empty where everything was."""
    import pandas as pd

    _write(
        pd.DataFrame([asdict(each) for each in failures], columns=["name", "reason"], dtype="object"),
        directory / ERRORS_FILE,
    )  # fmt: skip


def _write(frame: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as stream:
        frame.to_parquet(stream, index=False)
