"""A middlebox that acknowledges before the receiver has the data, audited on real kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.prober.experiments.live_path.live import Live, live

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Short and long transfers twice each, and one whose receiver holds its ACKs back.
PLAN = """
applications = ["http-data"]
directions = ["down"]
[experiments.transfers]
sizes_bytes = [60_000, 1_200_000]
repeats = 2
[experiments.delayed-ack]
size_bytes = 400_000
least_delay_s = 0.4
"""


#: Uploads of an unknown protocol, whose queue lies before the box, so that no acknowledgement comes too early.
UPLOADS = """
applications = ["tcp"]
directions = ["up"]
[experiments.transfers]
sizes_bytes = [100_000, 1_500_000]
repeats = 2
[experiments.delayed-ack]
least_delay_s = 0.4
"""
_FREE_PORTS = (26_800, 26_801)


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("live")) as made:
        yield made


def judged(path: Live, plan: str = PLAN) -> dict[str, Any]:
    (cell,) = path.audit(plan)["cells"]
    return dict(cell)


def test_without_a_box_the_cell_is_regular(path: Live) -> None:
    cell = judged(path)
    assert (cell["verdict"], cell["mechanism"], cell["from_bytes"]) == ("regular", None, None), cell["reason"]


def test_local_acknowledgement_is_a_split_although_the_data_are_the_servers(path: Live) -> None:
    with path.acknowledging(receivers_acknowledgements="dropped"):
        cell = judged(path)
    reported = (cell["verdict"], cell["mechanism"], cell["from_bytes"])
    assert reported == ("split-tcp", "local-acknowledgement", None), cell["reason"]
    assert "acks-sooner-than-path" in {item["finding"] for item in cell["evidence"]}


def test_acknowledgements_beside_the_receivers_own_are_not_called_regular(path: Live) -> None:
    with path.acknowledging(receivers_acknowledgements="passed"):
        cell = judged(path)
    assert cell["verdict"] != "regular", cell["reason"]


def test_local_acknowledgement_that_begins_late_is_not_called_regular(path: Live) -> None:
    with path.acknowledging(after_bytes=300_000):
        cell = judged(path)
    assert cell["verdict"] != "regular", cell["reason"]
    if cell["verdict"] == "split-tcp":
        assert 0 < cell["from_bytes"] <= 400_000, cell["reason"]


def test_short_uploads_do_not_make_longer_ones_regular(path: Live) -> None:
    with path.acknowledging(*_FREE_PORTS, directions=("up", "down"), after_bytes=300_000):
        cell = judged(path, UPLOADS)
    assert {each["verdict"] for each in cell["connections"] if "size_bytes=50000-" in each["task"]} == {"regular"}
    assert cell["verdict"] != "regular", cell["reason"]
