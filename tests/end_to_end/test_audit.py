"""From a plan to a matrix between real kernels: a split in the middle for one application, none for the other."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pepscope.results.schema import load_schema
from tests.end_to_end.network import SERVER_ADDRESS, Network, network
from tests.end_to_end.proxied import PEPSCOPE, PROXY_PORT, _radio, proxying, run

PLAN = """
applications = ["http-data", "tcp"]
directions = ["down"]
[experiments.transfers]
sizes_bytes = [2_000_000]
repeats = 1
[experiments.odd-requests]
"""

#: A split is its buffers, those of its kernel included: bounded ones do not swallow the whole object.
BUFFERS = ("--set", "mobile.send_buffer_bytes=65536", "--set", "server.receive_buffer_bytes=65536")


@contextlib.contextmanager
def serving(names: Network, directory: Path) -> Iterator[str]:
    """The measuring server; gives its key."""
    command = names.inside(names.server, PEPSCOPE, "probe", "serve", "--state", str(directory / "state"))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            word, _, key = process.stdout.readline().strip().partition(" ")
            assert word == "KEY"
            process.stdout.readline()
            yield key
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The archive of a run, and what the audit said of it."""
    directory = tmp_path_factory.mktemp("audit")
    plan = directory / "plan.toml"
    plan.write_text(PLAN)
    split = ("--interception", "transparent", "--device", "client0", "--ports", "80", *BUFFERS)
    with network() as names, _radio(names), serving(names, directory) as key:
        for where, device in ((names.client, "up0"), (names.middle, "server0"), (names.server, "up0")):
            run(names, where, "ip", "link", "set", device, "gso_max_segs", "1")
        with proxying(names, names.middle, "split", "--listen", f"0.0.0.0:{PROXY_PORT}", *split):
            ended = subprocess.run(
                names.inside(
                    names.client,
                    PEPSCOPE,
                    "audit",
                    str(plan),
                    "--server",
                    SERVER_ADDRESS,
                    "-o",
                    str(directory),
                    "--json",
                ),
                env={**os.environ, "PEPSCOPE_PROBE_KEY": key},
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
    assert ended.returncode == 0, ended.stderr
    (archive,) = directory.glob("*.pepscope.zip")
    return archive, json.loads(ended.stdout)


def verdicts(document: dict[str, Any]) -> dict[str, str]:
    return {cell["application"]: cell["verdict"] for cell in document["runs"][-1]["cells"]}


def test_the_matrix_is_the_truth(audited: tuple[Path, dict[str, Any]]) -> None:
    _, document = audited
    jsonschema.validate(document, load_schema("audit-1"))
    assert verdicts(document) == {"http-data": "split-tcp", "tcp": "regular"}
    (run_of_today,) = document["runs"]
    assert run_of_today["not_measured"] == []
    assert {cell["application"] for cell in run_of_today["cells"] if cell["connections"]} == {"http-data", "tcp"}


def test_the_archive_gives_the_same_verdicts_later_and_when_it_is_shared(
    audited: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    archive, document = audited
    shared = tmp_path / "shared.pepscope.zip"
    subprocess.run([PEPSCOPE, "probe", "anonymise", str(archive), "-o", str(shared)], check=True, capture_output=True)
    for command, path in (("detect", archive), ("audit", archive), ("audit", shared)):
        reported = subprocess.run([PEPSCOPE, command, str(path), "--json"], capture_output=True, text=True, check=True)
        later = json.loads(reported.stdout)
        assert verdicts(later) == verdicts(document)
        if path == archive:
            assert later["runs"] == document["runs"]
        else:
            assert SERVER_ADDRESS not in reported.stdout
