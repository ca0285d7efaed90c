"""Observations as JSON, and back: what is read may have been written by anybody."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pepscope.packets import Direction
from prober.errors import ArchiveError
from prober.experiment import Application, Flow, Json, Measurement, Observation, Status, Task, Want

_LONGEST_TEXT = 10_000
_LATEST_UNIX_NS = (1 << 63) - 1
_MOST_SECONDS = 1e9
_MOST_FLOWS = 100_000

Parsed = TypeVar("Parsed")


def write_observation(observation: Observation) -> bytes:
    """JSON of one observation. Raises ValueError, TypeError where a measurement holds what JSON cannot say."""
    task, measurement = observation.task, observation.measurement
    document: dict[str, Json] = {
        "task": {
            "experiment": task.experiment,
            "repeat": task.repeat,
            "application": None if task.application is None else task.application.value,
            "direction": None if task.direction is None else task.direction.name.lower(),
            "parameters": dict(task.parameters),
            "bytes_up": task.bytes_up,
            "bytes_down": task.bytes_down,
            "expected_s": task.expected_s,
            "captured": task.captured,
            "wants": sorted(want.value for want in task.wants),
        },
        "status": observation.status.value,
        "reason": observation.reason,
        "started_unix_ns": observation.started_unix_ns,
        "duration_s": observation.duration_s,
        "measurement": {
            "values": dict(measurement.values),
            "flows": [
                {
                    "mobile_port": flow.mobile_port,
                    "server_port": flow.server_port,
                    "role": flow.role,
                    "protocol": flow.protocol,
                }
                for flow in measurement.flows
            ],
            "ack_delay_s": measurement.ack_delay_s,
        },
        "mobile_capture": observation.mobile_capture,
        "server_capture": observation.server_capture,
        "capture_note": observation.capture_note,
    }
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def parse_json(data: bytes, what: str) -> dict[str, Json]:
    """A JSON object without numbers that are none. Raises ArchiveError."""
    try:
        document = json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"{what} is not JSON: {str(error)[:200]}") from None
    if not isinstance(document, dict):
        raise ArchiveError(f"{what} is not a JSON object")
    return document


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is no number")


def read_observation(data: bytes, what: str) -> Observation:
    """Check and read one observation; `what` names it in complaints. Raises ArchiveError."""
    table = Table(parse_json(data, what), what)
    measurement = table.table("measurement")
    reasonable = range(_LATEST_UNIX_NS)
    observation = Observation(
        task=_task(table.table("task")),
        status=table.parsed("status", Status),
        reason=table.text("reason"),
        started_unix_ns=table.whole("started_unix_ns", reasonable),
        duration_s=table.seconds("duration_s"),
        measurement=Measurement(
            values=measurement.mapping("values"),
            flows=tuple(_flow(item) for item in measurement.tables("flows", _MOST_FLOWS)),
            ack_delay_s=None if measurement.is_none("ack_delay_s") else measurement.seconds("ack_delay_s"),
        ),
        mobile_capture=table.text("mobile_capture"),
        server_capture=table.text("server_capture"),
        capture_note=table.text("capture_note"),
    )
    if (observation.status is Status.DONE) == bool(observation.reason):
        raise ArchiveError(f"{what} is {observation.status} with the reason {observation.reason[:60]!r}")
    return observation


def _task(table: Table) -> Task:
    return Task(
        experiment=table.text("experiment"),
        repeat=table.whole("repeat", range(1_000_000_000)),
        application=None if table.is_none("application") else table.parsed("application", Application),
        direction=None if table.is_none("direction") else table.parsed("direction", _direction),
        parameters=table.mapping("parameters"),
        bytes_up=table.whole("bytes_up", range(_LATEST_UNIX_NS)),
        bytes_down=table.whole("bytes_down", range(_LATEST_UNIX_NS)),
        expected_s=table.seconds("expected_s"),
        captured=table.truth("captured"),
        wants=frozenset(table.parsed_list("wants", Want)),
    )


def _flow(table: Table) -> Flow:
    ports = range(1 << 16)
    return Flow(
        mobile_port=table.whole("mobile_port", ports),
        server_port=table.whole("server_port", ports),
        role=table.text("role"),
        protocol=table.text("protocol"),
    )


def _direction(name: str) -> Direction:
    choices = {item.name.lower(): item for item in Direction}
    if name not in choices:
        raise ValueError(name)
    return choices[name]


class Table:
    """A JSON object whose fields are taken out by type; whatever is of another type is refused by name."""

    def __init__(self, values: Mapping[str, Json], what: str) -> None:
        self._values = values
        self.what = what

    def _get(self, name: str, kinds: type | tuple[type, ...], wanted: str) -> Any:
        value = self._values.get(name)
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            shown = "missing" if name not in self._values else f"not {repr(value)[:60]}"
            raise ArchiveError(f"{self.what}: {name} is {wanted}, {shown}")
        return value

    def is_none(self, name: str) -> bool:
        """Whether the field is there and says nothing."""
        return name in self._values and self._values[name] is None

    def text(self, name: str) -> str:
        """A text of bounded length."""
        value: str = self._get(name, str, "a text")
        if len(value) > _LONGEST_TEXT:
            raise ArchiveError(f"{self.what}: {name} is longer than {_LONGEST_TEXT} characters")
        return value

    def truth(self, name: str) -> bool:
        """True or false."""
        value: bool = self._get(name, bool, "true or false")
        return value

    def whole(self, name: str, allowed: range) -> int:
        """A whole number within bounds."""
        value: int = self._get(name, int, "a whole number")
        if value not in allowed:
            raise ArchiveError(f"{self.what}: {name} lies between {allowed.start} and {allowed.stop - 1}")
        return value

    def seconds(self, name: str) -> float:
        """A time that is finite and not negative."""
        value = float(min(self._get(name, (int, float), "a number"), 2 * _MOST_SECONDS))
        if not math.isfinite(value) or not 0 <= value <= _MOST_SECONDS:
            raise ArchiveError(f"{self.what}: {name} lies between 0 and {_MOST_SECONDS:g} s")
        return value

    def mapping(self, name: str) -> dict[str, Json]:
        """A JSON object as it is."""
        value: dict[str, Json] = self._get(name, dict, "an object")
        return value

    def table(self, name: str) -> Table:
        """A JSON object to be taken apart in turn."""
        return Table(self.mapping(name), f"{self.what}: {name}")

    def tables(self, name: str, most: int) -> tuple[Table, ...]:
        """A list of JSON objects."""
        items: list[Json] = self._get(name, list, "a list")
        if len(items) > most or not all(isinstance(item, dict) for item in items):
            raise ArchiveError(f"{self.what}: {name} is a list of at most {most} objects")
        return tuple(Table(item, f"{self.what}: {name}[{place}]") for place, item in enumerate(items))

    def parsed(self, name: str, parse: Callable[[str], Parsed]) -> Parsed:
        """A text that `parse` understands; it raises ValueError for others."""
        return self._parse(name, self.text(name), parse)

    def parsed_list(self, name: str, parse: Callable[[str], Parsed]) -> list[Parsed]:
        """A list of texts that `parse` understands."""
        items: list[Json] = self._get(name, list, "a list")
        return [self._parse(name, item, parse) for item in items]

    def _parse(self, name: str, text: Json, parse: Callable[[str], Parsed]) -> Parsed:
        try:
            return parse(text)
        except (ValueError, TypeError):
            raise ArchiveError(f"{self.what}: {name} is none of those known, but {repr(text)[:60]}") from None
