"""A middlebox that takes every second connection, audited on real kernels: our own relay in that mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.prober.experiments.live_path.live import Live, live

if TYPE_CHECKING:
    from collections.abc import Iterator

PLAN = """
applications = ["http-data"]
directions = ["down"]
[experiments.transfers]
sizes_bytes = [60_000, 1_200_000]
repeats = 2
"""


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("live")) as made:
        yield made


def test_every_second_connection_is_found_and_said(path: Live) -> None:
    with path.proxy("split", "--set", "rules.every=2"):
        (cell,) = path.audit(PLAN)["cells"]
    verdicts = [each["verdict"] for each in cell["connections"] if not each["set_aside"]]
    assert sorted(each == "regular" for each in verdicts) == [False, False, True, True], cell["reason"]
    assert cell["verdict"] in ("split-tcp", "tcp-proxy"), cell["reason"]
    assert "The middlebox takes some connections only: of 4 that are alike, 2 are split" in cell["reason"]
