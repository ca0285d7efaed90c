"""Rows as CSV files: dataclasses of whole numbers, numbers and words."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Row = TypeVar("Row", bound="DataclassInstance")

_KINDS = {"int": int, "float": float, "str": str}


def write_rows(rows: Sequence[DataclassInstance], path: Path) -> None:
    """One line a row, numbers with six digits."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(rows[0])])
        for row in rows:
            writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in asdict(row).values()])


def read_rows(path: Path, row: type[Row]) -> list[Row]:
    """The rows of such a file."""
    readers = {field.name: _KINDS[str(field.type)] for field in fields(row)}
    with path.open(encoding="utf-8", newline="") as file:
        return [row(**{name: readers[name](text) for name, text in given.items()}) for given in csv.DictReader(file)]
