"""What a detector says of two captures, as far as it is scored: a part of the JSON contract `detect-2`.

A detector of others needs no more than this: `schema` (1 or 2), in `pairs` the `vantages` (`capture` as given,
`client`, `server`), the `verdict` and, for ROC and calibration, the `probability`; `groups` where it judges those.
Other fields are passed over.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from detector.corpora.validation.labels import Case, Ends, GroupName, end_point
from pepscope.errors import PepscopeError
from pepscope.results.verdicts import GroupSide, SplitPlace, Verdict
from pepscope.strict_reading import between, read_as


class AnswerError(PepscopeError, ValueError):
    """The answer of a detector that is none."""


class _Probability(Struct, frozen=True):
    regular: Annotated[float, between(0.0, 1.0)]


class _Vantage(Struct, frozen=True):
    capture: str
    client: str
    server: str


class _Statement(Struct, frozen=True, kw_only=True):
    verdict: Verdict
    probability: _Probability | None = None
    reason: str = ""

    @property
    def split_probability(self) -> float | None:
        return None if self.probability is None else 1.0 - self.probability.regular


class _Bytes(Struct, frozen=True):
    up: int
    down: int


class _Pair(_Statement, frozen=True, kw_only=True):
    vantages: Annotated[list[_Vantage], Meta(min_length=1, max_length=2)]
    payload_bytes: _Bytes | None = None


class _Host(_Statement, frozen=True, kw_only=True):
    host: str
    where: SplitPlace | None = None


class _Group(_Statement, frozen=True, kw_only=True):
    network: str
    port: int
    side: GroupSide = GroupSide.BOTH
    where: SplitPlace | None = None
    by_host: list[_Host] = []


class _Answer(Struct, frozen=True, kw_only=True):
    schema: Literal[1, 2]
    pairs: list[_Pair]
    groups: list[_Group] = []


@dataclass(frozen=True, slots=True)
class Said:
    """A verdict with what counts of it; `split_probability` is None where the detector gives none."""

    verdict: Verdict
    split_probability: float | None
    where: SplitPlace | None
    reason: str
    payload_bytes: tuple[int, int] | None = None  # up and down


class Answer:
    """The statements of a detector on one run, to be asked for by label. Each is given once."""

    def __init__(self, read: _Answer, captures: Sequence[str]) -> None:
        self._places = {path: place for place, path in reversed(list(enumerate(captures)))}
        self._pairs = [_said(pair, None) for pair in read.pairs]
        self._by_ends: defaultdict[tuple[int, frozenset[str]], list[int]] = defaultdict(list)
        self._seen: list[dict[int, frozenset[str]]] = []
        self._left = set(range(len(read.pairs)))
        for number, pair in enumerate(read.pairs):
            seen = {self._place(each): _either_way(each) for each in pair.vantages}
            self._seen.append(seen)
            for key in seen.items():
                self._by_ends[key].append(number)
        self._groups: dict[tuple[GroupName, bool], Said] = {}
        for group in read.groups:
            name = GroupName(_network(group.network), group.port, None, group.side)
            self._add_group(name, _said(group, group.where))
            for host in group.by_host:
                self._add_group(
                    GroupName(name.network, name.port, _address(host.host), group.side), _said(host, host.where)
                )

    @property
    def connections(self) -> int:
        """How many connections it speaks of."""
        return len(self._pairs)

    @property
    def unlabelled(self) -> list[Said]:
        """Statements that no label asked for."""
        return [self._pairs[number] for number in sorted(self._left)]

    def of(self, case: Case) -> Said | None:
        """What is said of a connection or a group; None where nothing is.

        Of a connection: by both ends as both captures show them; else, where it was paired with another one or with
        none, what is said of it as either capture shows it. Of two with the same ends the first comes first. Of two
        groups of one network and port a label of a proxy (`where`) asks for the one that ends there, others for the
        other one.
        """
        if case.group is not None:
            is_proxy = case.where is SplitPlace.PROXY
            return self._groups.get((case.group, is_proxy), self._groups.get((case.group, not is_proxy)))
        wanted = {place: ends.either_way for place, ends in enumerate(case.ends) if ends is not None}
        candidates = [number for key in wanted.items() for number in self._by_ends.get(key, ()) if number in self._left]
        if not candidates:
            return None
        exact = [number for number in candidates if self._seen[number] == wanted]
        number = (exact or candidates)[0]
        self._left.discard(number)
        return self._pairs[number]

    def _place(self, vantage: _Vantage) -> int:
        if vantage.capture not in self._places:
            raise AnswerError(f"it speaks of a capture that it was not given, {vantage.capture!r}")
        return self._places[vantage.capture]

    def _add_group(self, name: GroupName, said: Said) -> None:
        # Connections of one network and port that ask for a proxy are another group than the others.
        is_proxy = said.where is SplitPlace.PROXY
        self._groups.setdefault((name, is_proxy), said)
        # A label without a side is of whichever side there is.
        self._groups.setdefault((GroupName(name.network, name.port, name.host), is_proxy), said)


def read_answer(document: Any, captures: Sequence[str]) -> Answer:
    """The answer in a document. Raises AnswerError."""
    return Answer(read_as(_Answer, document, AnswerError), captures)


def decode_answer(text: bytes, captures: Sequence[str]) -> Answer:
    """The answer in JSON text. Raises AnswerError."""
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AnswerError(f"its output must be JSON: {error}") from None
    return read_answer(document, captures)


def _said(statement: _Pair | _Group | _Host, where: SplitPlace | None) -> Said:
    carried = statement.payload_bytes if isinstance(statement, _Pair) else None
    return Said(
        statement.verdict, statement.split_probability, where, statement.reason,
        None if carried is None else (carried.up, carried.down),
    )  # fmt: skip


def _either_way(vantage: _Vantage) -> frozenset[str]:
    try:
        return Ends(end_point(vantage.client), end_point(vantage.server)).either_way
    except ValueError as error:
        raise AnswerError(f"an end of a connection must be address:port, got {error.args[0]!r}") from None


def _network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError:
        return text


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.removeprefix("[").removesuffix("]")))
    except ValueError:
        return text


def payload_of(said: Said) -> Mapping[str, float | str]:
    """Circumstances that a statement on a connection gives: its size, and where most of its payload went."""
    if said.payload_bytes is None:
        return {}
    up, down = said.payload_bytes
    return {"size_bytes": float(up + down), "direction": "upload" if up > down else "download"}
