"""A log of a long run says how far it is, seldom."""

from __future__ import annotations

import io
import sys

import pytest

from papers.progress import BETWEEN_S, LoggedProgress, shown_progress


def test_a_log_gets_a_line_now_and_then() -> None:
    now_s, log = [0.0], io.StringIO()
    progress = LoggedProgress("reproducing hu (1 of 4)", log, clock=lambda: now_s[0])
    for number in range(1, 501):
        now_s[0] = float(number)
        progress(500 + number, 1000)
    lines = log.getvalue().splitlines()
    assert len(lines) == 500 // BETWEEN_S
    assert lines[0] == "reproducing hu (1 of 4): 530 of 1,000 (53%) after 0.5 min"
    assert lines[-1] == "reproducing hu (1 of 4): 980 of 1,000 (98%) after 8.0 min"


def test_short_work_leaves_a_log_empty() -> None:
    log = io.StringIO()
    progress = LoggedProgress("searching", log, clock=lambda: 5.0)
    for number in range(1, 100):
        progress(number, 100)
    assert log.getvalue() == ""


def test_a_log_is_written_where_standard_error_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with shown_progress("reproducing") as progress:
        assert isinstance(progress, LoggedProgress)
