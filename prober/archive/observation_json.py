"""Observations as JSON, and back: the input is untrusted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Meta

from pepscope.captures.direction import Direction
from pepscope.strict_reading import between, read_as
from prober.client.capabilities import Capability
from prober.client.transfer import Flow
from prober.errors import ArchiveError, MalformedMessageError
from prober.measurement.measured import Count
from prober.measurement.task import Measurement, Observation, Status, Task
from prober.protocol.application import Application
from prober.protocol.json_documents import Json, parse_json

Text: TypeAlias = Annotated[str, Meta(max_length=1000)]
LongText: TypeAlias = Annotated[str, Meta(max_length=10_000)]
UnixNs: TypeAlias = Count
_Port: TypeAlias = Annotated[int, between(0, 65_535)]
_Seconds: TypeAlias = Annotated[float, between(0, 1e9)]

Document = TypeVar("Document", bound=msgspec.Struct)


class _FlowDocument(msgspec.Struct, frozen=True):
    mobile_port: _Port
    server_port: _Port
    role: Text
    protocol: Text


class _TaskDocument(msgspec.Struct, frozen=True, kw_only=True):
    experiment: Text
    repeat: Annotated[int, between(0, 1_000_000_000)]
    application: Application | None = None
    direction: Literal["up", "down"] | None = None
    parameters: dict[str, Any]
    bytes_up: Count
    bytes_down: Count
    expected_s: _Seconds
    captured: bool
    wants: Annotated[tuple[Capability, ...], Meta(max_length=len(Capability))]


class _MeasurementDocument(msgspec.Struct, frozen=True):
    values: dict[str, Any]
    flows: Annotated[tuple[_FlowDocument, ...], Meta(max_length=100_000)]
    ack_delay_s: _Seconds | None = None


class _ObservationDocument(msgspec.Struct, frozen=True):
    task: _TaskDocument
    status: Status
    reason: LongText
    started_unix_ns: UnixNs
    duration_s: _Seconds
    measurement: _MeasurementDocument
    mobile_capture: Text
    server_capture: Text
    capture_note: LongText
    #: Archives from before there were versions hold measurements of the first.
    experiment_version: Annotated[int, between(1, 1_000_000)] = 1


def write_observation(observation: Observation) -> bytes:
    """JSON of one observation. Raises ValueError, TypeError where a measurement holds what JSON cannot say."""
    task, measurement = observation.task, observation.measurement
    document = _ObservationDocument(
        task=_TaskDocument(
            experiment=task.experiment,
            repeat=task.repeat,
            application=task.application,
            direction=None if task.direction is None else _direction_name(task.direction),
            parameters=dict(task.parameters),
            bytes_up=task.bytes_up,
            bytes_down=task.bytes_down,
            expected_s=task.expected_s,
            captured=task.captured,
            wants=tuple(sorted(task.requires)),
        ),
        status=observation.status,
        reason=observation.reason,
        started_unix_ns=observation.started_unix_ns,
        duration_s=observation.duration_s,
        measurement=_MeasurementDocument(
            values=dict(measurement.values),
            flows=tuple(
                _FlowDocument(one.mobile_port, one.server_port, one.role, one.protocol) for one in measurement.flows
            ),
            ack_delay_s=measurement.ack_delay_s,
        ),
        mobile_capture=observation.mobile_capture,
        server_capture=observation.server_capture,
        capture_note=observation.capture_note,
        experiment_version=observation.experiment_version,
    )
    return json_bytes(msgspec.to_builtins(document))


def json_bytes(document: Mapping[str, Json]) -> bytes:
    """JSON as all documents of an archive are written. Raises ValueError, TypeError for what JSON cannot say."""
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def parse_document(data: bytes, what: str) -> dict[str, Json]:
    """A JSON object without numbers that are none. Raises ArchiveError."""
    try:
        return dict(parse_json(data, what))
    except MalformedMessageError as error:
        raise ArchiveError(str(error)) from None


def read_document(kind: type[Document], document: Mapping[str, Json], what: str) -> Document:
    """A document as its type; `what` names it in errors. Raises ArchiveError."""
    try:
        return read_as(kind, document, MalformedMessageError)
    except MalformedMessageError as error:
        raise ArchiveError(f"{what}: {error}") from None


def read_observation(data: bytes, what: str) -> Observation:
    """Check and read one observation; `what` names it in errors. Raises ArchiveError."""
    read = read_document(_ObservationDocument, parse_document(data, what), what)
    if (read.status is Status.DONE) == bool(read.reason):
        raise ArchiveError(
            f"{what} must have a reason exactly where it is not done, got {read.status} and {read.reason[:60]!r}"
        )
    task, measurement = read.task, read.measurement
    return Observation(
        task=Task(
            experiment=task.experiment,
            repeat=task.repeat,
            application=task.application,
            direction=None if task.direction is None else Direction[task.direction.upper()],
            parameters=task.parameters,
            bytes_up=task.bytes_up,
            bytes_down=task.bytes_down,
            expected_s=task.expected_s,
            captured=task.captured,
            requires=frozenset(task.wants),
        ),
        status=read.status,
        reason=read.reason,
        started_unix_ns=read.started_unix_ns,
        duration_s=read.duration_s,
        measurement=Measurement(
            values=measurement.values,
            flows=tuple(Flow(one.mobile_port, one.server_port, one.role, one.protocol) for one in measurement.flows),
            ack_delay_s=measurement.ack_delay_s,
        ),
        mobile_capture=read.mobile_capture,
        server_capture=read.server_capture,
        capture_note=read.capture_note,
        experiment_version=read.experiment_version,
    )


def _direction_name(direction: Direction) -> Literal["up", "down"]:
    return cast(Literal["up", "down"], direction.name.lower())
