"""Audits as JSON and frames, and what history means."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from pepscope.results.audits import AuditResult
from pepscope.results.encoding.audits import writable
from pepscope.results.schema import load_schema
from pepscope.results.verdicts import Verdict
from tests.reports.audits_made_by_hand import CDMA_I, DAY_NS, DOWN, STARTED_UNIX_NS, make_audit

KINDS = st.sampled_from(list(Verdict))
VALIDATOR = jsonschema.Draft202012Validator(load_schema("audit-1"))


def audit_of(kinds: list[Verdict]) -> AuditResult:
    return make_audit(*({("ftp", DOWN): kind} for kind in kinds))


def test_json_fits_the_schema():
    result = make_audit(CDMA_I, CDMA_I, figures=True)
    document = json.loads(result.to_json())
    jsonschema.validate(document, load_schema("audit-1"))
    assert [cell["verdict"] for cell in document["runs"][-1]["cells"]] == [kind.value for kind in CDMA_I.values()]
    assert document["runs"][0]["cells"][0]["connections"][2]["set_aside"].startswith("It is no transfer")


@given(st.lists(KINDS, min_size=1, max_size=8))
def test_json_is_valid_whatever_the_history(kinds):
    VALIDATOR.validate(audit_of(kinds).to_dict())


@given(st.lists(KINDS, min_size=1, max_size=8))
def test_inconclusive_runs_change_nothing(kinds):
    decided = [kind for kind in kinds if kind is not Verdict.INCONCLUSIVE]
    expected = [(a, b) for a, b in pairwise(decided) if a is not b]
    assert [(change.before, change.after) for change in audit_of(kinds).changes()] == expected


@given(st.lists(KINDS, min_size=1, max_size=8))
def test_since_is_the_beginning_of_the_last_stretch(kinds):
    since = audit_of(kinds).since_unix_ns("ftp", DOWN)
    if kinds[-1] is Verdict.INCONCLUSIVE:
        assert since is None
        return
    assert since is not None
    day = (since - STARTED_UNIX_NS) // DAY_NS
    assert kinds[day] is kinds[-1]
    assert set(kinds[day:]) <= {kinds[-1], Verdict.INCONCLUSIVE}
    earlier = [kind for kind in kinds[:day] if kind is not Verdict.INCONCLUSIVE]
    assert not earlier or earlier[-1] is not kinds[-1]


def test_the_frame_has_a_row_a_run_and_cell():
    frame = make_audit(CDMA_I, CDMA_I).to_frame()
    assert len(frame) == 2 * len(CDMA_I)
    assert list(frame["verdict"][:3]) == ["split-tcp", "split-tcp", "split-tcp"]
    assert frame["connections"].max() == 2
    assert str(frame["started"].iloc[0]) == "2026-09-21 14:13:20+00:00"


def test_what_json_cannot_write_becomes_null():
    assert writable({"a": (math.inf, {"b": math.nan, 3: 1.5})}) == {"a": [None, {"b": None, "3": 1.5}]}
