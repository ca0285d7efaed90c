"""The types that read a verdict's JSON agree with its schema."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pepscope.results.schema import load_schema
from reports.detection import contract

PARTS: dict[str, type[msgspec.Struct]] = {
    "capture": contract.CaptureDocument,
    "pair": contract.PairDocument,
    "vantage": contract.VantageDocument,
    "evidence": contract.EvidenceDocument,
    "probability": contract.ProbabilityDocument,
    "stretch": contract.StretchDocument,
    "group": contract.GroupDocument,
}


def fields_of(part: str) -> tuple[dict[str, Any], dict[str, msgspec.structs.FieldInfo]]:
    return load_schema("detect-2")["$defs"][part], {
        field.encode_name: field for field in msgspec.structs.fields(PARTS[part])
    }


@pytest.mark.parametrize("part", PARTS)
def test_what_is_read_is_what_the_schema_has(part: str) -> None:
    schema, read = fields_of(part)
    assert set(read) <= set(schema["properties"])
    assert {name for name, field in read.items() if field.required} <= set(schema["required"])


@pytest.mark.parametrize("part", PARTS)
def test_nothing_that_is_always_written_is_left_unread(part: str) -> None:
    schema, read = fields_of(part)
    counted = {"connections"} if part == "group" else set()  # as many as its pairs
    assert set(schema["required"]) - set(read) <= counted
