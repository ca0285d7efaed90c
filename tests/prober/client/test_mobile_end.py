"""Connections of the mobile's end: a blocked port costs a run one wait."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from prober.client import mobile_end
from prober.client.mobile_end import MobileEnd
from prober.errors import MalformedMessageError, MeasurementError, UnreachableError
from tests.prober.run.test_server_address import silent_port


def end(clock: Any) -> MobileEnd:
    control: Any = SimpleNamespace(clock=clock)
    about: Any = None
    return MobileEnd(
        control, about, host="localhost", address="127.0.0.1", task_limit_s=600.0, expected_round_trip_s=0.1
    )


def raising(error: Exception) -> Any:
    def raise_it() -> None:
        raise error

    return raise_it


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mobile_end, "CONNECT_S", 0.3)


def test_a_blocked_port_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    mobile = end(lambda: None)
    with silent_port() as port:
        with pytest.raises(MeasurementError, match=f"port {port} of the server did not answer .* it is blocked"):
            mobile.connect(port)
        with pytest.raises(TimeoutError):
            mobile.connect(port, timeout_s=0.1)
        monkeypatch.setattr(socket, "socket", raising(AssertionError("nothing may be sent")))
        with pytest.raises(MeasurementError, match="it is blocked"):
            mobile.connect(port)


@pytest.mark.parametrize("error", [UnreachableError("gone"), MalformedMessageError("odd")])
def test_a_path_that_is_away_blocks_no_port(error: Exception) -> None:
    mobile = end(raising(error))
    with silent_port() as port:
        for _ in range(2):
            with pytest.raises((UnreachableError, TimeoutError)):
                mobile.connect(port)
