"""The manifest of a labelled corpus: CSV, a row a label. docs/guide/validate.md describes its columns."""

from __future__ import annotations

import csv
import ipaddress
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from detector.corpora.validation.labels import (
    CLASSES,
    Case,
    Ends,
    Factor,
    GroupName,
    LabelError,
    LabelledRun,
    end_point,
)
from pepscope.results.verdicts import SPLIT_VERDICTS, GroupSide, SplitPlace, Verdict
from pepscope.strict_reading import shown

MANIFEST = "manifest.csv"

#: What columns of circumstances begin with.
FACTOR_PREFIX = "by_"

_NEEDED = ("capture_a", "truth")
COLUMNS = (
    "run", "capture_a", "capture_b", "client_a", "server_a", "client_b", "server_b", "side", "network", "port", "host",
    "truth", "accepted", "where",
)  # fmt: skip

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of the manifest; `place` is what errors call it."""

    place: str
    cells: Mapping[str, str]

    def text(self, name: str) -> str:
        return self.cells.get(name, "")

    def refuse(self, name: str, wanted: str) -> LabelError:
        given = shown(self.text(name)) if self.text(name) else "nothing"
        return LabelError(f"{self.place}: {name} must be {wanted}, got {given}")

    def value(self, name: str, read: Callable[[str], T], wanted: str) -> T | None:
        """The cell as a value; None where it is empty."""
        if not self.text(name):
            return None
        try:
            return read(self.text(name))
        except ValueError:
            raise self.refuse(name, wanted) from None


def read_manifest(path: Path) -> list[LabelledRun]:
    """The runs of a manifest, in its order; rows with the same captures are one run. Raises LabelError."""
    rows = _rows(path)
    runs: dict[tuple[Path, ...], tuple[str, list[Case]]] = {}
    for row in rows:
        captures = _captures(row, path.parent)
        name, cases = runs.setdefault(captures, (row.text("run") or _named(row), []))
        if row.text("run") and row.text("run") != name:
            raise row.refuse("run", f"{shown(name)} as in the earlier rows of these captures")
        case = _case(row, len(captures))
        if case.is_of_every_connection and any(each.is_of_every_connection for each in cases):
            raise LabelError(f"{row.place}: captures must have at most one label of every connection, got another one")
        cases.append(case)
    return [LabelledRun(name, captures, tuple(cases)) for captures, (name, cases) in runs.items()]


def _rows(path: Path) -> list[_Row]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            head = [name.strip() for name in next(reader, [])]
            _check_head(path, head)
            rows = []
            for cells in reader:
                place = f"{path}, line {reader.line_num}"
                if not any(cell.strip() for cell in cells) or cells[0].startswith("#"):
                    continue
                if len(cells) != len(head):
                    raise LabelError(f"{place}: a row must have {len(head)} cells as the head has, got {len(cells)}")
                rows.append(_Row(place, {name: cell.strip() for name, cell in zip(head, cells, strict=True)}))
    except OSError as error:
        raise LabelError(f"{path} cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise LabelError(f"{path} must be CSV in UTF-8: {error}") from None
    if not rows:
        raise LabelError(f"{path} must have at least one row with a label, got none")
    return rows


def _check_head(path: Path, head: list[str]) -> None:
    unknown = [name for name in head if name not in COLUMNS and not name.startswith(FACTOR_PREFIX)]
    if unknown:
        raise LabelError(
            f"{path}: columns must be {', '.join(COLUMNS)}, or begin with {FACTOR_PREFIX}, got "
            + ", ".join(shown(name) for name in unknown)
        )
    if missing := [name for name in _NEEDED if name not in head]:
        raise LabelError(f"{path} must have the columns {' and '.join(_NEEDED)}, {' and '.join(missing)} is missing")
    if len(set(head)) != len(head):
        raise LabelError(f"{path}: each column must be there once, got {', '.join(head)}")


def _captures(row: _Row, directory: Path) -> tuple[Path, ...]:
    """The files, relative to the manifest, whatever the working directory is."""
    if not row.text("capture_a"):
        raise row.refuse("capture_a", "a file")
    found = []
    for name in ("capture_a", "capture_b"):
        if row.text(name):
            path = directory / row.text(name)
            if not path.is_file():
                raise LabelError(f"{row.place}: {name} must be a file, got {path}, which does not exist")
            found.append(path)
    return tuple(found)


def _named(row: _Row) -> str:
    return " ".join(row.text(name) for name in ("capture_a", "capture_b") if row.text(name))


def _case(row: _Row, captures: int) -> Case:
    truth = row.value("truth", _class, f"one of {', '.join(CLASSES)}")
    if truth is None:
        raise row.refuse("truth", f"one of {', '.join(CLASSES)}")
    classes = row.value("accepted", lambda text: frozenset(map(_class, text.split())), "classes with spaces between")
    group, ends = _group(row), (_ends(row, "a"), _ends(row, "b"))
    if group is not None and ends != (None, None):
        raise LabelError(f"{row.place}: a row must name a connection or a group, got both")
    if ends[1] is not None and captures == 1:
        raise LabelError(f"{row.place}: client_b and server_b must be empty where there is no capture_b")
    accepted = frozenset({truth}) | (classes or frozenset())
    if len({verdict.is_split for verdict in accepted}) > 1:
        raise row.refuse("accepted", "regular for regular, and " + " or ".join(SPLIT_VERDICTS) + " for splits")
    where = row.value("where", SplitPlace, f"one of {', '.join(SplitPlace)}")
    if where is not None and not truth.is_split:
        raise row.refuse("where", "empty where nothing is split")
    return Case(truth, accepted, ends, group, where, _factors(row))


def _class(text: str) -> Verdict:
    verdict = Verdict(text)
    if verdict not in CLASSES:
        raise ValueError(text)
    return verdict


def _ends(row: _Row, letter: str) -> Ends | None:
    wanted = "address:port, with an IPv6 address in brackets"
    client, server = (row.value(f"{side}_{letter}", end_point, wanted) for side in ("client", "server"))
    if client is None or server is None:
        if client is not server:
            raise LabelError(f"{row.place}: client_{letter} and server_{letter} must be given together")
        return None
    return Ends(client, server)


def _group(row: _Row) -> GroupName | None:
    if not any(row.text(name) for name in ("network", "port", "host", "side")):
        return None
    network = row.value("network", lambda text: str(ipaddress.ip_network(text)), "a network such as 10.45.0.0/24")
    port = row.value("port", _port, "a number between 0 and 65535")
    if network is None or port is None:
        raise LabelError(f"{row.place}: network and port must be given together, and with side or host")
    side = row.value("side", GroupSide, f"one of {', '.join(GroupSide)}")
    host = row.value("host", lambda text: str(ipaddress.ip_address(text)), "an address")
    return GroupName(network, port, host, side)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise ValueError(text)
    return int(text)


def _factors(row: _Row) -> dict[str, Factor]:
    return {
        name.removeprefix(FACTOR_PREFIX): as_factor(text)
        for name, text in row.cells.items()
        if name.startswith(FACTOR_PREFIX) and text
    }


def as_factor(text: str) -> Factor:
    """A number where the text is a finite one."""
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text
