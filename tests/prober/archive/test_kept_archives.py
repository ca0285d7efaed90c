"""Archives of earlier days stay readable: one of each schema is kept, with what was in it and what it showed.

`kept/run-1.pepscope.zip` is a run between two network namespaces with nothing between them, with captures at both ends,
by the version that first promised this. A change that cannot read it, or judges it otherwise, needs a new schema, and a
reader for this one.
"""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from pepscope.captures.direction import Direction
from pepscope.results.verdicts import Verdict
from prober.archive.archive_file import SCHEMA, open_archive
from prober.audit.history import judge_archives
from prober.measurement.task import Status

KEPT = Path(__file__).parent / "kept"
SCHEMAS = Path(__file__).parents[3] / "pepscope" / "schemas"

#: By schema: the file, its experiments with their observations, and its verdicts.
ARCHIVES = {
    "pepscope-run-1": (
        "run-1.pepscope.zip",
        {"transfers": 4, "cache": 1, "odd-requests": 1, "options": 2, "ttl-syn": 2},
        {(application, direction): Verdict.REGULAR for application in ("http-data", "tcp") for direction in Direction},
    ),
}


def test_the_schema_that_is_written_now_is_kept() -> None:
    assert SCHEMA in ARCHIVES
    assert sorted(path.name for path in KEPT.iterdir()) == sorted(name for name, _, _ in ARCHIVES.values())


@pytest.mark.parametrize("schema", ARCHIVES)
def test_a_kept_archive_is_read(schema: str) -> None:
    name, experiments, _ = ARCHIVES[schema]
    with open_archive(KEPT / name) as archive:
        assert archive.manifest.complete
        assert archive.metadata["notes"] == {"operator": "laboratory"}
        found = [observation.task.experiment for observation in archive.observations]
        assert {each: found.count(each) for each in found} == experiments
        assert {observation.status for observation in archive.observations} == {Status.DONE}
        assert all(path.stat().st_size > 24 for path in archive.captures.values())
        assert len(archive.captures) >= 2 * experiments["transfers"]
        assert all(observation.measurement.values for observation in archive.observations)


@pytest.mark.parametrize("schema", ARCHIVES)
def test_a_kept_archive_is_judged_as_ever(schema: str) -> None:
    name, _, verdicts = ARCHIVES[schema]
    result = judge_archives([str(KEPT / name)])
    assert {(cell.application, cell.direction): cell.verdict for cell in result.latest.cells} == verdicts
    assert result.latest.warnings == ()
    assert all(cell.probability[Verdict.REGULAR] > 0.99 for cell in result.latest.cells)
    jsonschema.validate(json.loads(result.to_json()), json.loads((SCHEMAS / "audit-1.json").read_text()))
