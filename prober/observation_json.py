"""Observations as JSON, and back: what is read may have been written by anybody."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pepscope.packets import Direction
from prober.errors import ArchiveError, MalformedMessageError
from prober.experiment import Application, Flow, Json, Measurement, Observation, Status, Task, Want
from prober.message_fields import Fields

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


def parse_document(data: bytes, what: str) -> Document:
    """A JSON object without numbers that are none. Raises ArchiveError."""
    try:
        document = json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"{what} is not JSON: {str(error)[:200]}") from None
    if not isinstance(document, dict):
        raise ArchiveError(f"{what} is not a JSON object")
    return Document(document, what)


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is no number")


def read_observation(data: bytes, what: str) -> Observation:
    """Check and read one observation; `what` names it in complaints. Raises ArchiveError."""
    table = parse_document(data, what)
    try:
        observation = _observation(table)
    except MalformedMessageError as error:
        raise ArchiveError(str(error)) from None
    if (observation.status is Status.DONE) == bool(observation.reason):
        raise ArchiveError(f"{what} is {observation.status} with the reason {observation.reason[:60]!r}")
    return observation


class Document(Fields):
    """The fields of what an archive holds; methods raise MalformedMessageError."""

    def __init__(self, document: Any, what: str) -> None:
        super().__init__(document, what)
        self.values: Mapping[str, Json] = document
        self.what = what

    def has(self, name: str) -> bool:
        """Whether there is such a field that says something."""
        return self.values.get(name) is not None

    def mapping(self, name: str) -> dict[str, Json]:
        """An object as it is."""
        value = self.values.get(name)
        if not isinstance(value, dict):
            raise MalformedMessageError(f"{self.what}: {name} is an object")
        return value

    def document(self, name: str) -> Document:
        """An object to be taken apart in turn."""
        return Document(self.mapping(name), f"{self.what}: {name}")

    def documents(self, name: str, most: int) -> list[Document]:
        """A list of objects."""
        return [Document(item, f"{self.what}: {name}[{place}]") for place, item in enumerate(self.list(name, most))]

    def unix_ns(self, name: str) -> int:
        """A time."""
        return self.integer(name, 0, _LATEST_UNIX_NS)

    def parsed(self, name: str, parse: Callable[[str], Parsed]) -> Parsed:
        """A text that `parse` understands; it raises ValueError for others."""
        return self._parse(name, self.text(name), parse)

    def parsed_list(self, name: str, parse: Callable[[str], Parsed], most: int) -> list[Parsed]:
        """A list of texts that `parse` understands."""
        return [self._parse(name, item, parse) for item in self.list(name, most)]

    def _parse(self, name: str, text: Json, parse: Callable[[str], Parsed]) -> Parsed:
        try:
            return parse(text)
        except (ValueError, TypeError):
            raise MalformedMessageError(f"{self.what}: {name} is none of those known, but {repr(text)[:60]}") from None


def _observation(table: Document) -> Observation:
    measurement = table.document("measurement")
    return Observation(
        task=_task(table.document("task")),
        status=table.parsed("status", Status),
        reason=table.text("reason", _LONGEST_TEXT),
        started_unix_ns=table.unix_ns("started_unix_ns"),
        duration_s=table.number("duration_s", 0, _MOST_SECONDS),
        measurement=Measurement(
            values=measurement.mapping("values"),
            flows=tuple(_flow(item) for item in measurement.documents("flows", _MOST_FLOWS)),
            ack_delay_s=measurement.number("ack_delay_s", 0, _MOST_SECONDS) if measurement.has("ack_delay_s") else None,
        ),
        mobile_capture=table.text("mobile_capture"),
        server_capture=table.text("server_capture"),
        capture_note=table.text("capture_note", _LONGEST_TEXT),
    )


def _task(table: Document) -> Task:
    return Task(
        experiment=table.text("experiment"),
        repeat=table.integer("repeat", 0, 1_000_000_000),
        application=table.parsed("application", Application) if table.has("application") else None,
        direction=table.parsed("direction", _direction) if table.has("direction") else None,
        parameters=table.mapping("parameters"),
        bytes_up=table.integer("bytes_up"),
        bytes_down=table.integer("bytes_down"),
        expected_s=table.number("expected_s", 0, _MOST_SECONDS),
        captured=table.truth("captured"),
        wants=frozenset(table.parsed_list("wants", Want, len(Want))),
    )


def _flow(table: Document) -> Flow:
    return Flow(
        mobile_port=table.integer("mobile_port", 0, 65_535),
        server_port=table.integer("server_port", 0, 65_535),
        role=table.text("role"),
        protocol=table.text("protocol"),
    )


def _direction(name: str) -> Direction:
    choices = {item.name.lower(): item for item in Direction}
    if name not in choices:
        raise ValueError(name)
    return choices[name]
