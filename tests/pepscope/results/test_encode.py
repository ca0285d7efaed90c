"""Detections as the JSON contract and as a frame."""

from __future__ import annotations

import json
import math

import jsonschema
import numpy as np
import pytest

from pepscope.errors import UsageError
from pepscope.results.schema import NAMES, load_schema
from pepscope.results.verdicts import (
    CaptureSummary,
    DetectionResult,
    Evidence,
    Outcome,
    PairResult,
    VantageName,
    Verdict,
)


def result() -> DetectionResult:
    evidence = Evidence(
        "ack_timing",
        Outcome.SPLIT,
        "acks-before-data",
        0.5,
        "The sender saw 3 of 4 acknowledgements before the receiver sent them.",
        {"slack_s": np.float64(-0.25), "share": math.nan, "packets": np.int64(3)},  # type: ignore[dict-item]
        ("few packets",),
    )
    pair = PairResult(
        (
            VantageName("a.pcap", "10.0.0.1:1024", "[2001:db8::1]:80"),
            VantageName("b.pcap", "10.0.0.9:1", "10.0.0.2:80"),
        ),
        Verdict.SPLIT_TCP,
        {Verdict.REGULAR: 0.1, Verdict.SPLIT_TCP: 0.8, Verdict.TCP_PROXY: 0.1},
        "Timing.",
        (evidence,),
        12,
        100,
        200,
        1.5,
    )
    alone = PairResult(pair.vantages[:1], Verdict.INCONCLUSIVE, {}, "One capture only.", (), 3, 0, 0, 0.0)
    return DetectionResult((CaptureSummary("a.pcap", 12, 1, ("cut",)), CaptureSummary("b.pcap", 10, 1)), (pair, alone))


def test_json_follows_its_schema_and_is_strict() -> None:
    document = json.loads(result().to_json())
    jsonschema.validate(document, load_schema("detect-2"))
    numbers = document["pairs"][0]["evidence"][0]["numbers"]
    assert numbers == {"slack_s": -0.25, "share": None, "packets": 3}
    assert document["pairs"][0]["probability"] == {"regular": 0.1, "split-tcp": 0.8, "tcp-proxy": 0.1}
    assert [len(pair["vantages"]) for pair in document["pairs"]] == [2, 1]


@pytest.mark.parametrize(
    "change",
    [{"schema": 3}, {"captures": []}, {"pairs": [{"verdict": "maybe"}]}],
    ids=lambda change: next(iter(change)),
)
def test_schema_refuses_what_is_no_result(change: dict[str, object]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(result().to_dict() | change, load_schema("detect-2"))


def test_frame_has_a_row_a_pair() -> None:
    frame = result().to_frame()
    assert list(frame["verdict"]) == ["split-tcp", "inconclusive"]
    assert list(frame["client_b"].isna()) == [False, True]
    assert len(DetectionResult((), ()).to_frame().columns) == len(frame.columns)


def test_schemas_are_schemas() -> None:
    for name in NAMES:
        jsonschema.Draft202012Validator.check_schema(load_schema(name))
    with pytest.raises(UsageError, match="detect-2"):
        load_schema("../errors")
