"""Questions to the tables of a corpus, in SQL."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from detector.corpora.tables import CAPTURES_FILE, CONNECTIONS, ERRORS_FILE, GROUPS
from pepscope.errors import UsageError
from pepscope.extras import missing_package

#: Rows that are fetched at a time where an answer may be long.
_FETCHED = 2048


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows with the names of their columns."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]

    def to_dict(self) -> dict[str, Any]:
        """Names and rows, for JSON, which has no number that is not finite: null."""
        return {"schema": 1, "columns": list(self.columns), "rows": _finite(self.rows)}


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return value


class Tables:
    """The tables of a corpus, open for questions."""

    def __init__(self, database: Any) -> None:
        self._database = database

    def ask(self, sql: str) -> Answer:
        """The whole answer to one SELECT."""
        asked = self._asked(sql)
        return Answer(tuple(str(each[0]) for each in asked.description or ()), asked.fetchall())

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """The rows of an answer, which need not fit into memory; the next question ends it."""
        asked = self._asked(sql)
        while found := asked.fetchmany(_FETCHED):
            yield from found

    def keep(self, name: str, sql: str) -> None:
        """Keep the answer to one SELECT as a further table, while this is open."""
        self._database.execute(f"CREATE TEMP TABLE {name} AS {sql}")

    def _asked(self, sql: str) -> Any:
        import duckdb

        if sql.encode("utf-8", "replace").decode() != sql:
            raise UsageError(f"a question must be text in UTF-8, got {sql!r}")
        statements = self._database.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise UsageError("a question is one SELECT: tables are not changed")
        return self._database.execute(statements[0])


@contextmanager
def open_tables(directory: str | Path) -> Iterator[Tables]:
    """Open the tables `connections`, `groups`, `captures` and `errors` of a corpus, and nothing else.

    Raises UsageError for a directory without tables, where DuckDB is not installed, and, inside the block, for what
    DuckDB does not understand.
    """
    try:
        import duckdb
    except ImportError:
        raise UsageError(missing_package("duckdb")) from None
    base = Path(directory)
    if not (base / CAPTURES_FILE).is_file():
        raise UsageError(f"{base} holds no tables of 'pepscope audit-captures'")
    with duckdb.connect() as database:
        try:
            _open_views(database, base)
            yield Tables(database)
        except duckdb.Error as error:
            raise UsageError(f"the question cannot be answered: {str(error).splitlines()[0]}") from None


def query(directory: str | Path, sql: str) -> Answer:
    """Ask the tables `connections`, `groups`, `captures` and `errors` of a corpus, in DuckDB's SQL.

    Nothing but these tables can be read, and nothing written. Raises UsageError for a directory without tables, a
    question that DuckDB does not understand, and where it is not installed.
    """
    with open_tables(directory) as tables:
        return tables.ask(sql)


def _open_views(database: Any, base: Path) -> None:
    """Make a view of each table that is there, and close everything else."""
    for name, place in (
        (CONNECTIONS, f"{CONNECTIONS}/**/*.parquet"), (GROUPS, f"{GROUPS}/*.parquet"), ("captures", CAPTURES_FILE),
        ("errors", ERRORS_FILE),
    ):  # fmt: skip
        if any(base.glob(place)):
            database.execute(
                f"CREATE VIEW {name} AS SELECT * FROM read_parquet({_quoted(base / place)}, "
                "hive_partitioning = true, hive_types_autocast = false, union_by_name = true)"
            )
    database.execute("SET TimeZone = 'UTC'")
    database.execute(f"SET allowed_directories = [{_quoted(base)}]")
    database.execute("SET enable_external_access = false")
    database.execute("SET lock_configuration = true")


def _quoted(path: Path) -> str:
    return "'" + str(path.resolve()).replace("'", "''") + "'"
