"""The whole way: real kernels, real captures, the installed command, the verdict."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.end_to_end.network import transfer

PEPSCOPE = Path(sysconfig.get_path("scripts")) / "pepscope"
SCHEMAS = Path(__file__).parents[2] / "pepscope" / "schemas"
PAYLOAD_BYTES = 2_000_000


def detect(*captures: Path) -> dict[str, Any]:
    finished = subprocess.run(
        [PEPSCOPE, "detect", "--json", *captures], capture_output=True, text=True, timeout=600, check=True
    )
    document: dict[str, Any] = json.loads(finished.stdout)
    return document


@pytest.mark.parametrize(("split", "verdicts"), [(False, {"regular"}), (True, {"split-tcp", "tcp-proxy"})])
def test_verdict_on_a_transfer_between_namespaces(tmp_path: Path, split: bool, verdicts: set[str]) -> None:
    server, client = transfer(tmp_path, split=split, payload_bytes=PAYLOAD_BYTES)
    document = detect(server, client)
    (schema,) = SCHEMAS.glob("detect-[0-9]*.json")
    jsonschema.validate(document, json.loads(schema.read_text()))
    (pair,) = document["pairs"]
    assert {vantage["capture"] for vantage in pair["vantages"]} == {str(server), str(client)}
    assert pair["verdict"] in verdicts, pair["reason"]
    assert detect(client, server)["pairs"][0]["verdict"] == pair["verdict"], "the order of the captures must not matter"
