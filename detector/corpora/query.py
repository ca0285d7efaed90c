"""Questions to the tables of a corpus, in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from detector.corpora.tables import CAPTURES_FILE, CONNECTIONS, ERRORS_FILE, GROUPS
from pepscope.errors import UsageError
from pepscope.extras import missing_package


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows with the names of their columns."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]

    def to_dict(self) -> dict[str, Any]:
        """Names and rows, for JSON."""
        return {"schema": 1, "columns": list(self.columns), "rows": [list(row) for row in self.rows]}


def query(directory: str | Path, sql: str) -> Answer:
    """Ask the tables `connections`, `groups`, `captures` and `errors` of a corpus, in DuckDB's SQL.

    Nothing but these tables can be read, and nothing written. Raises UsageError for a directory without tables, a
    question that DuckDB does not understand, and where it is not installed.
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
            _open_tables(database, base)
            statements = database.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise UsageError("a question is one SELECT: tables are not changed")
            asked = database.execute(statements[0])
            columns = tuple(str(each[0]) for each in asked.description or ())
            return Answer(columns, asked.fetchall())
        except duckdb.Error as error:
            raise UsageError(f"the question cannot be answered: {str(error).splitlines()[0]}") from None


def _open_tables(database: Any, base: Path) -> None:
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
