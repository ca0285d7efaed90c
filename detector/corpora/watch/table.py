"""A watch on a terminal: a table that is drawn anew, and the same table at the end."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator, Sequence
from typing import TextIO

from detector.corpora.watch.metrics import Snapshot
from detector.corpora.watch.standing import StandingGroup, time_text
from pepscope.command_line.volume import counted
from pepscope.results.attention import group_attention

_HEAD = (
    "CLIENTS IN",
    "PORT",
    "SEEN FROM",
    "NEAR LEG",
    "HIDDEN",
    "WHERE",
    "EXCH.",
    "CONN.",
    "VERDICT",
    "PROB.",
    "SINCE",
)
_RIGHT = {1, 3, 4, 6, 7}
_BETWEEN_DRAWINGS_S = 1.0

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_COLOURS = {"split-tcp": "\x1b[31m", "tcp-proxy": "\x1b[31m", "regular": "\x1b[32m", "inconclusive": "\x1b[33m"}
_PLAIN = "\x1b[0m"


def table_lines(groups: Sequence[StandingGroup], *, most: int | None = None, colour: bool = False) -> Iterator[str]:
    """Groups as lines, those that deserve attention first."""
    ordered = sorted(groups, key=lambda each: group_attention(each.result))
    shown = ordered if most is None else ordered[:most]
    rows = [_HEAD, *(_cells(group) for group in shown)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEAD))]
    for number, row in enumerate(rows):
        cells = [
            cell.rjust(width) if place in _RIGHT else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        line = " ".join(cells).rstrip()
        paint = _COLOURS[shown[number - 1].result.verdict.value] if colour and number else ""
        yield f"{paint}{line}{_PLAIN}" if paint else line
    if len(ordered) > len(shown):
        yield f"and {len(ordered) - len(shown):,} more"


def summary_line(snapshot: Snapshot) -> str:
    """What was seen, in a sentence."""
    slices = ", ".join(f"{count:,} {name}" for name, count in snapshot.slices.items() if count or name == "judged")
    parts = [counted(snapshot.connections, "connection"), f"slices: {slices}"]
    if snapshot.packets is not None:
        counts = snapshot.packets
        share = f" ({counts.dropped / counts.received:.2%})" if counts.dropped and counts.received else ""
        parts.append(f"{counts.received:,} packets, {counts.dropped:,} dropped{share}")
    if snapshot.judged_until_ns:
        parts.append(f"judged until {time_text(snapshot.judged_until_ns)}")
    return "; ".join(parts)


class LiveTable(logging.Handler):
    """The table on a terminal while a watch runs; shows the latest message of the log below it."""

    def __init__(self, stream: TextIO, title: str) -> None:
        super().__init__()
        self._stream = stream
        self._title = title
        self._message = ""
        self._drawn_s = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message."""
        self._message = f"{time.strftime('%H:%M:%S')} {record.getMessage()}"

    def __enter__(self) -> LiveTable:
        self._stream.write(_ENTER)
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.write(_LEAVE)
        self._stream.flush()

    def draw(self, snapshot: Snapshot) -> None:
        """Draw, at most once a second."""
        if time.monotonic() - self._drawn_s < _BETWEEN_DRAWINGS_S:
            return
        self._drawn_s = time.monotonic()
        size = shutil.get_terminal_size()
        lines = [f"pepscope watch {self._title}   {time.strftime('%H:%M:%S')}", summary_line(snapshot), ""]
        if snapshot.groups:
            lines += table_lines(snapshot.groups, most=max(size.lines - 7, 1), colour=True)
        else:
            lines.append("no connection judged yet: a connection is judged when it ends, at the end of its slice")
        lines += ["", self._message]
        text = "".join(f"{_cut(line, size.columns)}\x1b[K\r\n" for line in lines[: size.lines - 1])
        self._stream.write(f"\x1b[H{text}\x1b[J")
        self._stream.flush()


def _cut(line: str, columns: int) -> str:
    """A line as wide as the terminal at most; colours take no room."""
    if not line.startswith("\x1b"):
        return line[:columns]
    start = line.index("m") + 1
    return line[:start] + line[start:].removesuffix(_PLAIN)[:columns] + _PLAIN


def _cells(group: StandingGroup) -> tuple[str, ...]:
    result = group.result
    leading = max(group.split_probability, 1 - group.split_probability)
    return (
        result.network,
        group.port,
        result.side.value,
        _milliseconds(result.near_round_trip_s),
        _milliseconds(result.hidden_round_trip_s),
        "-" if not result.verdict.is_split else "?" if result.where is None else result.where.value,
        f"{result.exchanges or 0:,}",
        f"{len(result.pairs):,}",
        result.verdict.value,
        ">99 %" if leading > 0.99 else f"{leading:.0%}".replace("%", " %"),
        time_text(group.since_ns)[5:19].replace("T", " "),
    )


def _milliseconds(time_s: float | None) -> str:
    return "-" if time_s is None else f"{1000 * time_s:.3g} ms"
