"""Links, congestion controls and applications that are written in Python."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

from pepscope.errors import ScenarioError, SimulationError
from reference_sim.plug_ins import Application, Control, ControlAcknowledgement, Link, SimulatedPacket
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate

HERE = "tests.reference_sim.test_plug_ins"
EXAMPLES = Path(__file__).parents[2] / "examples"


class Wire(Link):
    """A line of a rate and a delay in both directions, as `wired` has it."""

    def __init__(self, settings: Mapping[str, Any], seed: int, name: str) -> None:
        super().__init__(settings, seed, name)
        self.rate_bit_s = int(settings["rate_bit_s"])
        self.delay_ns = round(1e9 * settings["delay_s"])
        self.free_at_ns = [0, 0]
        self.under_way: list[deque[tuple[int, SimulatedPacket]]] = [deque(), deque()]

    def handle_packet(self, now_ns: int, packet: SimulatedPacket) -> None:
        way = int(packet.is_up)
        start_ns = max(now_ns, self.free_at_ns[way])
        self.free_at_ns[way] = start_ns + 8 * packet.length_bytes * 1_000_000_000 // self.rate_bit_s
        self.under_way[way].append((self.free_at_ns[way] + self.delay_ns, packet))

    def poll_transmit(self, now_ns: int) -> SimulatedPacket | None:
        for way in self.under_way:
            if way and way[0][0] <= now_ns:
                return way.popleft()[1]
        return None

    def poll_timeout(self) -> int | None:
        return min((way[0][0] for way in self.under_way if way), default=None)


class Sieve(Wire):
    """It drops every hundredth packet down, and marks every tenth."""

    def handle_packet(self, now_ns: int, packet: SimulatedPacket) -> None:
        if packet.number % 100 == 99 and not packet.is_up:
            packet.discard()
            return
        if packet.number % 10 == 0:
            assert packet.mark() == packet.understands_marks
        super().handle_packet(now_ns, packet)


class Broken(Wire):
    def handle_packet(self, now_ns: int, packet: SimulatedPacket) -> None:
        raise ValueError("too tired")


class TwoPackets(Control):
    """A window of two segments, whatever happens."""

    def __init__(self, maximum_segment_bytes: int, initial_window_bytes: int) -> None:
        super().__init__(maximum_segment_bytes, initial_window_bytes)
        self.window_bytes = 2 * maximum_segment_bytes

    def on_acknowledged(self, acknowledgement: ControlAcknowledgement) -> None:
        assert acknowledgement.newly_delivered_bytes > 0
        assert acknowledgement.round_trip_time_ns is None or acknowledgement.round_trip_time_ns > 0

    def on_congestion(self, now_ns: int, cause: str, in_flight_bytes: int) -> None:
        assert cause in ("loss", "timeout", "mark")


class Paced(TwoPackets):
    """A large window, at 400,000 byte/s."""

    paces = True
    pacing_rate_byte_s = 400_000.0

    def __init__(self, maximum_segment_bytes: int, initial_window_bytes: int) -> None:
        super().__init__(maximum_segment_bytes, initial_window_bytes)
        self.window_bytes = 1_000_000


class Shrinking(TwoPackets):
    def on_acknowledged(self, acknowledgement: ControlAcknowledgement) -> None:
        raise ZeroDivisionError("no window left")


class Echo(Application):
    """The client says three things a second apart, the server repeats each."""

    def on_connected(self, now_ns: int) -> None:
        if self.is_client:
            self.said = 0
            self.on_timer(now_ns)

    def on_timer(self, now_ns: int) -> None:
        self.said += 1
        self.write(b"%d" % self.said * self.settings["bytes"])
        if self.said < 3:
            self.wake_at(now_ns + 1_000_000_000)

    def on_data(self, now_ns: int, data: bytes) -> None:
        if not self.is_client:
            self.write(data)
        elif data.startswith(b"3"):
            assert data == b"3" * self.settings["bytes"]
            self.close()


class Mute(Echo):
    def on_data(self, now_ns: int, data: bytes) -> None:
        raise ValueError("nothing to say")


def scenario(hop: dict[str, Any], control: str = "reno", ecn: str = "off", size: int = 300_000) -> Scenario:
    end = {"control": control, "ecn": ecn}
    traffic = [{"kind": "download", "bytes": size}]
    return Scenario.from_mapping(
        {"name": "plug-in", "duration_s": 60, "server": end, "mobile": {"ecn": ecn}, "path": [hop], "traffic": traffic}
    )


def plug_in(kind: str, **settings: Any) -> dict[str, Any]:
    settings = {"rate_bit_s": 4_000_000, "delay_s": 0.02, **settings}
    return {"kind": "plug-in", "name": "link", "plug_in": f"{HERE}:{kind}", "settings": settings}


def test_a_wire_in_python_is_a_wire(tmp_path: Path) -> None:
    line = {"rate_bit_s": 4_000_000, "delay_s": 0.02}
    wired = simulate(scenario({"kind": "wired", "name": "link", "down": line, "up": line}), tmp_path / "wired")
    python = simulate(scenario(plug_in("Wire")), tmp_path / "python")
    assert python.truth["flows"] == wired.truth["flows"]
    for tap in ("server", "mobile"):
        assert python.captures[tap].read_bytes() == wired.captures[tap].read_bytes()


def test_drops_and_marks_are_counted_and_repaired() -> None:
    run = simulate(scenario(plug_in("Sieve"), ecn="standard"), captures=False)
    (flow,) = run.truth["flows"]
    assert flow["delivered_exactly"] == {"down": True, "up": True}
    counts = run.truth["hops"][0]["down"]
    assert counts["overflowed_packets"] > 0
    assert counts["marked_packets"] > 5
    assert flow["server"]["tcp"]["retransmitted_segments"] >= counts["overflowed_packets"]
    assert flow["server"]["tcp"]["mark_reactions"] > 0


def test_a_control_in_python_sets_window_and_pace() -> None:
    size, round_trip_s = 300_000, 0.046
    slow = simulate(scenario(plug_in("Wire"), f"plug-in:{HERE}:TwoPackets", size=size), captures=False)
    took_s = slow.truth["flows"][0]["mobile"]["last_read_s"]
    assert took_s == pytest.approx(size / (2 * 1448) * round_trip_s, rel=0.1)
    paced = simulate(scenario(plug_in("Wire"), f"plug-in:{HERE}:Paced", size=size), captures=False)
    assert paced.truth["flows"][0]["mobile"]["last_read_s"] == pytest.approx(size / 400_000 + 0.08, rel=0.05)


def test_the_same_seed_gives_the_same_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES.parent))
    runs = [simulate(EXAMPLES / "plug-ins.toml", captures=False) for _ in range(2)]
    assert runs[0].truth["flows"] == runs[1].truth["flows"]
    assert runs[0].truth["flows"][0]["delivered_exactly"]["down"]
    assert runs[0].truth["hops"][0]["down"]["overflowed_packets"] > 0


@pytest.mark.parametrize(
    ("hop", "control", "error", "words"),
    [
        ({**plug_in("Wire"), "plug_in": "none-of-that-name"}, "reno", ScenarioError, "entry point of pepscope.links"),
        ({**plug_in("Wire"), "plug_in": f"{HERE}:Missing"}, "reno", ScenarioError, "cannot be loaded"),
        (plug_in("TwoPackets"), "reno", ScenarioError, "subclass of reference_sim.plug_ins.Link"),
        (plug_in("Wire", rate_bit_s="fast"), "reno", ScenarioError, "refuses its settings"),
        (plug_in("Broken"), "reno", SimulationError, "raised ValueError: too tired"),
        (plug_in("Wire"), f"plug-in:{HERE}:Shrinking", SimulationError, "ZeroDivisionError: no window left"),
        (plug_in("Wire"), f"plug-in:{HERE}:Wire", ScenarioError, "subclass of reference_sim.plug_ins.Control"),
    ],
)
def test_what_a_plug_in_gets_wrong_is_one_sentence(
    hop: dict[str, Any], control: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        simulate(scenario(hop, control), captures=False)


def test_a_missing_name_and_other_settings_are_refused() -> None:
    with pytest.raises(ScenarioError, match="plug_in"):
        Scenario.from_mapping({"name": "x", "duration_s": 1, "path": [{"kind": "plug-in"}]})
    with pytest.raises(ScenarioError, match="settings"):
        Scenario.from_mapping({"name": "x", "duration_s": 1, "path": [{**plug_in("Wire"), "settings": 3}]})


def talk(plug_in: str, **settings: Any) -> Scenario:
    line = {"kind": "wired", "name": "line", "down": {"rate_bit_s": 10_000_000, "delay_s": 0.02}}
    traffic = [{"kind": "plug-in", "plug_in": plug_in, "settings": {"bytes": 5000}, **settings}]
    record = {"taps": [{"name": "mobile", "snap_bytes": 0}]}
    return Scenario.from_mapping(
        {"name": "talk", "duration_s": 60, "path": [line], "traffic": traffic, "record": record}
    )


@pytest.mark.parametrize("security", ["none", "tls-1.3"])
def test_an_application_in_python_says_its_bytes_at_its_times(tmp_path: Path, security: str) -> None:
    run = simulate(talk(f"{HERE}:Echo", security=security), tmp_path)
    assert run.ending == "finished"
    (flow,) = run.truth["flows"]
    assert flow["delivered_exactly"] == {"down": True, "up": True}
    said = [m for m in flow["messages"] if m["from"] == "mobile" and m["name"].startswith("write")]
    repeated = [m for m in flow["messages"] if m["from"] == "server" and m["name"].startswith("write")]
    assert [m["written_s"] - said[0]["written_s"] for m in said] == pytest.approx([0.0, 1.0, 2.0])
    assert [m["written_s"] for m in repeated] == pytest.approx([m["read_s"] for m in said])
    shown = run.captures["mobile"].read_bytes()
    assert (b"2" * 1000 in shown) == (security == "none")


def test_an_application_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    known = EntryPoints([EntryPoint("echo", f"{HERE}:Echo", "pepscope.applications")])
    monkeypatch.setattr("reference_sim.plug_ins.entry_points", lambda **wanted: known.select(**wanted))
    assert simulate(talk("echo"), captures=False).ending == "finished"
    with pytest.raises(ScenarioError, match=r"entry point of pepscope\.applications"):
        simulate(talk("other"), captures=False)


def test_the_example_of_an_application_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES.parent))
    runs = [simulate(EXAMPLES / "guessing-game.toml", captures=False, seed=seed) for seed in (1, 1, 2, 3, 4, 5)]
    assert all(run.ending == "finished" for run in runs)
    assert runs[0].truth["flows"] == runs[1].truth["flows"]
    assert len({len(run.truth["flows"][0]["messages"]) for run in runs}) > 1


def test_what_an_application_gets_wrong_is_one_sentence() -> None:
    with pytest.raises(SimulationError, match="raised ValueError: nothing to say"):
        simulate(talk(f"{HERE}:Mute"), captures=False)
    with pytest.raises(ScenarioError, match=r"subclass of reference_sim\.plug_ins\.Application"):
        simulate(talk(f"{HERE}:Wire"), captures=False)
