"""Seed 003 with the fewest seeds: orders and directions, not numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from papers.experiment import Effort
from papers.ren_lin import PAPER
from papers.ren_lin.fast_links import FASTER, LONG_STEPS
from papers.ren_lin.links import transfer
from papers.results import Reproduction, StatementOutcome
from papers.runner import reproduce


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    directory: Path = tmp_path_factory.mktemp("ren-lin")
    return reproduce(PAPER, directory, effort=Effort.REDUCED, processes=2)


def table(found: Reproduction, name: str) -> Any:
    return next(one.frame for one in found.assessment.tables if one.name == name)


def test_only_the_nearest_terminal_is_served_evenly_and_not_by_fcds(found: Reproduction) -> None:
    spread = table(found, "table-2").set_index(["terminal", "scheduler"])["variation"]
    for scheduler in ("RR", "MCI"):
        assert spread["UE1", scheduler] < 0.2
        assert spread["UE1", scheduler] < min(spread[terminal, scheduler] for terminal in ("UE2", "UE3", "UE4"))
    assert spread["UE1", "FCDS"] > 0.3


def test_the_paper_s_model_is_nearer_than_padhye_s(found: Reproduction) -> None:
    rows = table(found, "table-2")
    assert (rows["model_error"] < rows["padhye_error"]).all()
    assert (rows["model_error"] < 0.1).all()
    assert (rows["padhye_packets_s"] > rows["actual_packets_s"]).all()
    assert (rows["actual_packets_s"] <= rows["mean_packets_s"] * 1.01).all()


def test_the_proxy_helps_over_driven_links_and_a_plain_split_does_not(found: Reproduction) -> None:
    rows = table(found, "table-3")
    assert rows["driven_gain_percent"].mean() > 0
    even = rows[rows["scheduler"] == "RR"]
    assert (even["driven_gain_percent"] > 0).all()
    assert even["cell_gain_percent"].mean() > 0
    likeness = rows["driven_split_kbit_s"] / rows["driven_tcp_kbit_s"]
    assert likeness.between(0.97, 1.03).all()


def test_a_larger_buffer_takes_what_bursts_of_service_spoil(found: Reproduction) -> None:
    rows = table(found, "proxy-in-the-cell").set_index(["scheduler", "variant"])
    for scheduler in ("MCI", "FCDS"):
        small, large = rows.loc[scheduler, "proxy, as chosen"], rows.loc[scheduler, "proxy, 400 frames"]
        assert large["drops"] < small["drops"] / 2
        assert large["UE2_kbit_s"] > small["UE2_kbit_s"]


def test_i_tcp_loses_where_the_pipe_is_longer_than_the_buffer(found: Reproduction) -> None:
    used = table(found, "link-choices").set_index(["scheme", "variant"])["0.02 s"]
    slow = table(found, "link-choices").set_index(["scheme", "variant"])["8 s"]
    assert used["i-tcp", "as chosen"] > 0.95
    assert used["i-tcp", "175 ms more"] < used["i-tcp", "75 ms more"] < 0.95
    assert used["i-tcp", FASTER] < min(0.85, slow["i-tcp", FASTER] - 0.05)
    assert used["i-tcp", f"{FASTER}, 200 packets of buffer"] > 0.95


def test_the_law_holds_any_variation_that_its_buffer_has_room_for(found: Reproduction) -> None:
    used = table(found, "link-choices").set_index(["scheme", "variant"])
    for change in ("as chosen", "rates of 0-200 %", f"{FASTER}, 200 packets of buffer"):
        assert (used.loc[("adaptation", change), ["0.02 s", "8 s"]] > 0.95).all()
    fast, long = used.loc[("adaptation", FASTER)], used.loc[("adaptation", f"{FASTER}, {LONG_STEPS}")]
    assert long["8 s"] < 0.9 < 0.95 < fast["8 s"]
    assert used.loc[("i-tcp", FASTER), "0.02 s"] + 0.05 < fast["0.02 s"] < 0.95


def test_a_frozen_rate_wastes_a_link_that_changes_fast(found: Reproduction) -> None:
    used = table(found, "link-choices").set_index(["scheme", "variant"])
    frozen, exact = used.loc[("i-tcp", "frozen service")], used.loc[("i-tcp", "as chosen")]
    assert frozen["0.02 s"] < exact["0.02 s"] - 0.05
    assert frozen["8 s"] == pytest.approx(exact["8 s"], abs=0.01)


def test_long_steps_lose_the_queue_and_short_ones_hold_it(found: Reproduction) -> None:
    rows = table(found, "stability").set_index(["law", "rates"])
    for rates in ("constant", "90-110 %", "50-150 %"):
        unstable, stable = rows.loc[("Ts 0.2, delta 4", rates)], rows.loc[("Ts 0.025, delta 35", rates)]
        assert unstable["empty_share"] > 0.1
        assert stable["empty_share"] == 0.0
        assert stable["deviation_frames"] < 25 < unstable["deviation_frames"]
        assert rows.loc[("Ts 0.2, delta 4, at once", rates), "utilisation"] < unstable["utilisation"]
    assert rows.loc[("Ts 0.1, delta 4", "constant"), "empty_share"] == 0.0
    reached = [rows.loc[(f"Ts 0.025, delta {delta}", "constant"), "reached_s"] for delta in (35, 20, 4, 1)]
    assert reached == sorted(reached)


def test_every_statement_has_a_verdict_and_a_reason(found: Reproduction) -> None:
    wheres = [statement.where for statement in found.assessment.statements]
    assert sum(where.startswith("Table 2, ") for where in wheres) == 12
    assert sum(where.startswith("Table 3, ") for where in wheres) == 24
    assert sum(where.startswith("Proposition 1, ") for where in wheres) == 3
    plain = (StatementOutcome.REPRODUCED, StatementOutcome.UNDECIDED)
    for statement in found.assessment.statements:
        assert statement.outcome in plain or len(statement.reason) > 20
        assert statement.tolerance or statement.outcome is StatementOutcome.NOT_MEASURED
    by_where = {statement.where: statement.outcome for statement in found.assessment.statements}
    assert by_where["Figs 15 and 16"] is StatementOutcome.DIRECTION
    assert by_where["Fig. 13"] is StatementOutcome.DIRECTION
    assert by_where["Fig. 6"] is StatementOutcome.REPRODUCED


def test_deviations_of_table_3_are_those_of_starts_within_the_first_second(found: Reproduction) -> None:
    rows = [one for one in found.assessment.statements if one.published.startswith("standard deviation")]
    assert len(rows) == 12
    for row in rows:
        assert len(row.comparisons) == 3
        assert all(0.0 <= one.mean < 30.0 for one in row.comparisons)
        assert row.outcome is not StatementOutcome.NOT_MEASURED
    assert any(one.mean > 0.1 for row in rows for one in row.comparisons)


def test_drops_are_detected_by_late_arrivals(found: Reproduction) -> None:
    chart = next(one for one in found.assessment.charts if one.name == "figure-6-drops")
    assert len(chart.lines[0].x) > 20
    assert list(chart.lines[0].x) == sorted(chart.lines[0].x)


def test_a_terminal_that_is_hardly_served_has_no_estimate_and_stops_nothing() -> None:
    ending = transfer(np.array([50, 80, 60, 0]))
    assert 0.0 < ending.rate_packets_s < 80.0
    never = transfer(np.array([0] * 149 + [1]))
    assert (never.rate_packets_s, never.padhye_packets_s) == (0.0, None)
