"""Active experiments on real kernels with a split: each finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pepscope.captures.packets import Direction
from prober.experiments.dead_port import DeadPort
from prober.experiments.delayed_ack import DelayedAck
from prober.experiments.slow_reader import SlowReader
from prober.experiments.ttl_syn import TtlSyn
from prober.measurement.experiment import Experiment
from prober.protocol.application import Application
from tests.prober.experiments.live_path.live import HAPROXY, HTTP_PORT, HTTPS_PORT, Live
from tests.prober.experiments.live_path.short_options import BOTH_WAYS, HURRIED, INTACT, NAMES, SPLIT, UPLOADS

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def split(path: Live) -> Iterator[Live]:
    with path.proxy("split", ports=f"{HTTP_PORT},{HTTPS_PORT}"):
        yield path


@pytest.mark.parametrize(("experiment", "direction"), [(DelayedAck(), Direction.DOWN), (SlowReader(), Direction.DOWN)])
def test_a_split_by_haproxy(path: Live, experiment: Experiment[Any, Any], direction: Direction) -> None:
    with path.proxy(HAPROXY):
        made = path.measure_until_found(experiment, direction=direction, **HURRIED[experiment.name])
    assert made.findings == SPLIT[experiment.name], made


@pytest.mark.parametrize(("experiment", "direction"), BOTH_WAYS, ids=NAMES)
def test_a_split_connection(split: Live, experiment: Experiment[Any, Any], direction: Direction | None) -> None:
    made = split.measure_until_found(experiment, direction=direction, **HURRIED[experiment.name])
    assert made.findings == SPLIT[experiment.name], made


@pytest.mark.parametrize("application", UPLOADS[:2])
def test_an_upload_that_a_middlebox_accepts(split: Live, application: Application) -> None:
    made = split.measure(SlowReader(), application, Direction.UP, **HURRIED["slow-reader"])
    assert made.findings == ["more-taken-than-receiver-holds"], made


def test_the_free_port_beside_a_split_one(split: Live) -> None:
    for experiment in (TtlSyn(), DeadPort()):
        made = split.measure(experiment, Application.TCP, **HURRIED[experiment.name])
        assert made.findings == [INTACT[experiment.name]], made


ROOTLESS = """
applications = ["http-data"]
[experiments.delayed-ack]
size_bytes = 60_000
least_delay_s = 0.4
[experiments.slow-reader]
fill_s = 1.0
pause_s = 3.0
[experiments.ttl-syn]
rounds = 4
timeout_s = 0.6
[experiments.dead-port]
attempts = 1
"""


def test_without_root_a_split_is_found_all_the_same(split: Live) -> None:
    run = split.audit_without_root(ROOTLESS)
    assert [(cell["direction"], cell["verdict"]) for cell in run["cells"]] == [
        ("down", "split-tcp"),
        ("up", "split-tcp"),
    ]
    found = {(cell["direction"], item["finding"]) for cell in run["cells"] for item in cell["evidence"]}
    taken = {(direction, "more-taken-than-receiver-holds") for direction in ("down", "up")}
    assert taken | {("up", "acks-not-from-receiver")} <= found
    (missing,) = run["not_measured"]
    assert (missing["experiment"], missing["direction"]) == ("delayed-ack", "down")
    assert "root" in missing["reason"]


def test_captures_show_the_split_while_acknowledgements_are_held(split: Live) -> None:
    made = split.measure(DelayedAck(), direction=Direction.DOWN, captured=True, **HURRIED["delayed-ack"])
    assert made.findings == SPLIT["delayed-ack"], made
    assert [evidence.numbers["ack_delay_s"] for evidence in made.evidence] == [
        pytest.approx(made.measurement.ack_delay_s)
    ] * 2
    assert made.facts["acknowledged_on_the_way_without_split"] == 0
