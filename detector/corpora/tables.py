"""The tables of a corpus: every connection a row, partitioned by day and network, and written whole or not at all."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

import pepscope
from detector.corpora.matching import Unit
from pepscope.errors import UsageError
from pepscope.results.frames import detection_table, groups_table, unicode_name
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import Outcome
from pepscope.whole_file import whole_file

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from detector.corpora.sources import Failure
    from detector.corpora.survey import Survey
    from pepscope.results.verdicts import DetectionResult

CONNECTIONS, GROUPS, UNITS = "connections", "groups", "units"
CAPTURES_FILE, ERRORS_FILE = "captures.parquet", "errors.parquet"

#: The name of the network of captures of which no manifest says one.
UNNAMED = "unnamed"
#: The day of connections whose capture gives no time.
NO_DAY = "unknown"

_UNKNOWN_NS, _DAY_NS = -1, 86_400 * 10**9

_CAPTURE_TEXTS = ("capture", "digest", "warnings", "vantage", "network", "operator", "notes")
_CAPTURE_COLUMNS = (
    "capture", "digest", "size_bytes", "packets", "connections", "first_ns", "last_ns", "warnings", "vantage",
    "network", "operator", "notes",
)  # fmt: skip
#: What says that a directory holds tables, and in which form; raise the form where columns change.
IDENTITY_FILE = "corpus.json"
IDENTITY = {"form": 3, "version": pepscope.__version__}

#: What methods say of a connection, by the column that names those that say it.
_SAID = {"methods_split": Outcome.SPLIT, "methods_intact": Outcome.INTACT}

#: The table of captures has their digests.
_MADE_WITH = ["sha256_a", "sha256_b", "version", "options"]
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
    connections, days = _connections(result, unit, identity), _days(result)
    network = quote(unit.network or UNNAMED, safe="")
    for day in np.unique(days):
        folder = directory / CONNECTIONS / f"day={day}" / f"network={network}"
        _write(connections.filter(days == day), folder / f"{identity}.parquet")
    groups = groups_table(result)
    if len(groups):
        _write(
            groups.append_column("unit", _repeated(identity, len(groups))), directory / GROUPS / f"{identity}.parquet"
        )
    kinds = ((kind["values"], kind["counts"]) for kind in connections["verdict"].value_counts().to_pylist())
    return {"connections": len(connections), "groups": len(groups), **dict(kinds)}


def _connections(result: DetectionResult, unit: Unit, identity: str) -> pa.Table:
    """`detection_table` with what joins connections over captures: times, unit, port, and what their groups say."""
    import pyarrow as pa
    from pyarrow import compute

    table, started_ns = detection_table(result), _started_ns(result)
    servers = compute.coalesce(table["server_a"], table["server_b"])
    ports = compute.struct_field(compute.extract_regex(servers, r":(?P<port>\d+)$"), "port")
    unknown = started_ns == _UNKNOWN_NS
    table = table.drop_columns(_MADE_WITH)
    columns = dict(zip(table.column_names, table.columns, strict=True)) | {
        "started": pa.array(started_ns // 1000, pa.timestamp("us", "UTC"), mask=unknown),
        "duration_s": _known(np.asarray(table["duration_s"])),
        "started_ns": pa.array(started_ns),
        "unit": _repeated(identity, len(table)),
        "port": compute.fill_null(ports.cast(pa.int64()), 0),
        **_of_groups(result),
        **{name: pa.array(list(_methods(result, outcome)), pa.string()) for name, outcome in _SAID.items()},
    }
    for letter, series in zip("ab", unit.series, strict=False):
        there = table[f"capture_{letter}"].is_valid()
        columns[f"capture_{letter}"] = compute.if_else(there, unicode_name(series.name), pa.scalar(None, pa.string()))
    return pa.table(columns)


def _started_ns(result: DetectionResult) -> npt.NDArray[np.int64]:
    table = PairTable.of(result.pairs)
    return np.asarray(table.columns.started_ns, np.int64)[np.asarray(table.rows, np.int64)]


def _days(result: DetectionResult) -> npt.NDArray[np.str_]:
    """The day in which each connection began, in UTC."""
    started_ns = _started_ns(result)
    names = np.datetime_as_string((started_ns // _DAY_NS).astype("datetime64[D]"))
    return np.where(started_ns == _UNKNOWN_NS, NO_DAY, names)


def _methods(result: DetectionResult, outcome: Outcome) -> Iterator[str]:
    """Of each connection the names of the methods that say so, with spaces between."""
    pairs = PairTable.of(result.pairs)
    for place in range(len(pairs)):
        yield " ".join(sorted({form.method for form in pairs.forms(place) if form.outcome is outcome}))


def _of_groups(result: DetectionResult) -> dict[str, pa.Array]:
    """What the group of each connection is judged; where it is in two, by the first."""
    import pyarrow as pa

    first = np.full(len(result.pairs), -1)
    for number, group in reversed(list(enumerate(result.groups))):
        first[list(group.pairs)] = number
    columns = {}
    for name in _OF_GROUP:
        values = [getattr(value := getattr(group, name), "value", value) for group in result.groups]
        kind = pa.float64() if name.endswith("_s") else pa.string()
        column = pa.array(values, kind).take(pa.array(first, mask=first < 0))
        columns["client_network" if name == "network" else f"group_{name}"] = column
    return columns


def _repeated(text: str, count: int) -> pa.Array:
    import pyarrow as pa

    return pa.repeat(pa.scalar(text, pa.string()), count)


def _known(numbers: npt.NDArray[np.float64]) -> pa.Array:
    """Missing values where numbers are NaN."""
    import pyarrow as pa

    return pa.array(numbers, mask=np.isnan(numbers))


def remove_unit(identity: str, directory: Path) -> None:
    """Take a unit out of the tables."""
    for path in (*(directory / CONNECTIONS).rglob(f"{identity}.parquet"), directory / GROUPS / f"{identity}.parquet"):
        path.unlink(missing_ok=True)


def write_captures(surveys: Sequence[Survey], units: Sequence[Unit], directory: Path) -> None:
    """Write the table of files: what each holds, and what its labels are. Files of earlier runs stay, unless they are
    there again with the same content or under the same name."""
    import pyarrow.parquet as pq

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
    path = directory / CAPTURES_FILE
    if path.is_file():
        digests, names = ({row[name] for row in rows} for name in ("digest", "capture"))
        earlier = pq.read_table(path).to_pylist()
        rows = [row for row in earlier if row["digest"] not in digests and row["capture"] not in names] + rows
    _write(_table(rows, _CAPTURE_COLUMNS, _CAPTURE_TEXTS), path)


def write_errors(failures: Sequence[Failure], directory: Path) -> None:
    """Write the table of what could not be read or judged; empty where everything was."""
    names = ("name", "reason")
    _write(_table([asdict(each) for each in failures], names, names), directory / ERRORS_FILE)


def _table(rows: Sequence[dict[str, Any]], names: Sequence[str], texts: Sequence[str]) -> pa.Table:
    """Rows of texts and whole numbers; what a row does not say is missing.

    By way of JSON, since pyarrow imports pandas to take values of Python: a third of a second, for which all wait here.
    """
    import pyarrow as pa
    from pyarrow import json as arrow_json

    schema = pa.schema([(name, pa.string() if name in texts else pa.int64()) for name in names])
    if not rows:
        return pa.Table.from_batches([], schema)
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode("utf-8", "replace")
    return arrow_json.read_json(
        io.BytesIO(lines),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )


def _write(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as stream:
        pq.write_table(table, stream)
