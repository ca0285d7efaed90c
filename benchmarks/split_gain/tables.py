"""The tables of docs/models/split_gain.md."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import median
from typing import TypeVar

from benchmarks.split_gain.closed_forms import line_gain, saved_from_ten, slow_start_gain
from benchmarks.split_gain.gains import LineRow, ObjectRow
from benchmarks.split_gain.live import LiveRow

Row = TypeVar("Row", ObjectRow, LineRow)

#: Server's control and split point's that the tables show; the CSV files have all of them.
SHOWN = (
    ("reno", "reno"), ("cubic", "cubic"), ("cubic", "bbr"), ("bbr", "bbr"), ("bbr", "cubic"), ("bbr3", "bbr3"),
    ("bbr3", "cubic"),
)  # fmt: skip
CONTROLS = {"reno": "NewReno", "cubic": "CUBIC", "bbr": "BBR", "bbr3": "BBRv3"}
ACCESSES = {"lte": "LTE", "nr": "NR", "satellite": "satellite", "wlan": "wireless LAN"}
#: Mean rate (bit/s), server's round trip and mobile's (s) of each access link, as the closed form wants them.
_SLOW_STARTS = {
    "lte": (40e6, 0.04, 0.022),
    "nr": (160e6, 0.04, 0.012),
    "satellite": (25e6, 0.04, 0.56),
    "wlan": (60e6, 0.04, 0.004),
}
_SMALL_BOX = "cubic, 256 KiB"
_AT_ONCE = "cubic, at once"
#: The line that the table of buffers is about.
_MIDDLE_DELAY_S = 0.025
_MIDDLE_BUFFER = 83


def summary_table(objects: Sequence[ObjectRow], lines: Sequence[LineRow]) -> str:
    """How many cells gain, lose or show no difference, by server and box."""
    body = []
    for what, rows in (("objects", objects), ("lines", lines)):
        for server in CONTROLS:
            for box in dict.fromkeys(row.box for row in rows):
                cells = [row for row in rows if (row.server_control, row.box) == (server, box)]
                if not cells:
                    continue
                counts = Counter(outcome(row) for row in cells)
                gains = [row.gain for row in cells]
                body.append(
                    [
                        what, CONTROLS[server], _box(box), *(str(counts[name]) for name in ("gains", "same", "loses")),
                        _signed(median(gains)), _signed(min(gains)), _signed(max(gains)),
                    ]
                )  # fmt: skip
    head = ["", "server", "box", "gains", "no difference", "loses", "median", "least", "most"]
    return _markdown(head, body, numbers_from=3)


def outcome(row: ObjectRow | LineRow) -> str:
    """`gains` or `loses` where the interval is on one side of 0 and the gain is 1 % or more, else `same`."""
    if row.gain_low > 0 and row.gain >= 0.01:
        return "gains"
    return "loses" if row.gain_high < 0 and row.gain <= -0.01 else "same"


def object_tables(rows: Sequence[ObjectRow]) -> str:
    """For each access link the time end to end and the gains, by size."""
    parts = []
    for access, title in ACCESSES.items():
        here = [row for row in rows if row.access == access]
        body = []
        for size in sorted({row.size_bytes for row in here}):
            sized = [row for row in here if row.size_bytes == size]
            times = {row.server_control: row.end_to_end_s for row in sized}
            body.append([_size(size), *(_seconds(times[server]) for server in CONTROLS), *_shown(sized)])
        head = ["object", *(f"{name}, end to end" for name in CONTROLS.values()), *_heads()]
        parts.append(f"**{title}**\n\n{_markdown(head, body)}")
    return "\n\n".join(parts)


def first_byte_table(rows: Sequence[ObjectRow]) -> str:
    """First byte and completion of 10 and 100 kB by when the box connects; a CUBIC server and a CUBIC box."""
    body = []
    for access, title in ACCESSES.items():
        for size in (10_000, 100_000):
            chosen = {
                row.box: row
                for row in rows
                if (row.access, row.size_bytes, row.server_control) == (access, size, "cubic")
            }
            if not {"cubic", _AT_ONCE} <= set(chosen):
                continue
            asked, at_once = chosen["cubic"], chosen[_AT_ONCE]
            body.append(
                [
                    title, _size(size), _ms(asked.first_byte_end_to_end_s), _ms(asked.first_byte_split_s),
                    _ms(at_once.first_byte_split_s), _gain(asked), _gain(at_once),
                ]
            )  # fmt: skip
    head = [
        "", "object", "first byte end to end", "split, with the request", "split, with the SYN",
        "gain, with the request", "gain, with the SYN",
    ]  # fmt: skip
    return _markdown(head, body, numbers_from=2)


def delay_table(rows: Sequence[ObjectRow]) -> str:
    """Mean delay of segments of the largest object, end to end and by what a split adds."""
    largest = max(row.size_bytes for row in rows)
    body = []
    for access, title in ACCESSES.items():
        here = [row for row in rows if (row.access, row.size_bytes) == (access, largest)]
        delays = {row.server_control: row.delay_end_to_end_s for row in here}
        changes = []
        for server, box in SHOWN:
            row = _find(here, server, box)
            half_s = (row.delay_change_high_s - row.delay_change_low_s) / 2
            change_s = (row.delay_change_high_s + row.delay_change_low_s) / 2
            changes.append(f"{_minus(f'{1e3 * change_s:+.0f}')} ± {1e3 * half_s:.0f}")
        body.append([title, *(f"{1e3 * delays[server]:.0f}" for server in CONTROLS), *changes])
    head = ["ms", *(f"{name}, end to end" for name in CONTROLS.values()), *_heads()]
    return _markdown(head, body)


def line_table(rows: Sequence[LineRow]) -> str:
    """Lines with a buffer of one bandwidth-delay product, by the server's distance and loss."""
    here = [row for row in rows if row.buffer_packets == _MIDDLE_BUFFER]
    body = []
    for delay_s in sorted({row.server_delay_s for row in here}):
        for loss in sorted({row.loss_probability for row in here}):
            cell = [row for row in here if (row.server_delay_s, row.loss_probability) == (delay_s, loss)]
            rates = {row.server_control: row.end_to_end_bit_s for row in cell}
            closed = line_gain(delay_s, loss)
            small = [row for row in cell if (row.server_control, row.box) == ("cubic", _SMALL_BOX)]
            body.append(
                [
                    f"{2e3 * delay_s:g} ms", f"{100 * loss:g} %",
                    *(f"{rates[server] / 1e6:.1f}" for server in CONTROLS), *_shown(cell),
                    _gain(small[0]) if small else "", "" if closed is None else _signed(closed),
                ]
            )  # fmt: skip
    ends = [f"{name}, Mbit/s" for name in CONTROLS.values()]
    head = ["server's leg", "loss", *ends, *_heads(), "CUBIC → CUBIC, 256 KiB", "closed form, NewReno"]
    return _markdown(head, body)


def buffer_table(rows: Sequence[LineRow]) -> str:
    """Lines by their buffers, the server 50 ms away: gain and change of the segments' mean delay."""
    here = [row for row in rows if row.server_delay_s == _MIDDLE_DELAY_S]
    body = []
    for loss in sorted({row.loss_probability for row in here}):
        for buffer in sorted({row.buffer_packets for row in here}):
            cell = [row for row in here if (row.loss_probability, row.buffer_packets) == (loss, buffer)]
            delays = [
                f"{1e3 * row.delay_end_to_end_s:.0f} to {1e3 * row.delay_split_s:.0f}"
                for row in (_find(cell, "cubic", "cubic"), _find(cell, "bbr", "bbr"))
            ]
            body.append([f"{100 * loss:g} %", str(buffer), *_shown(cell), *delays])
    head = ["loss", "packets", *_heads(), "delay, CUBIC, ms", "delay, BBR, ms"]
    return _markdown(head, body)


def slow_start_table(rows: Sequence[ObjectRow]) -> str:
    """Seconds saved for 1 MB by a box with the server's control, beside the closed form of slow start."""
    body = []
    for access, title in ACCESSES.items():
        closed = slow_start_gain(*_SLOW_STARTS[access])
        here = [row for row in rows if (row.access, row.size_bytes) == (access, 1_000_000)]
        saved = [_find(here, control, control) for control in CONTROLS]
        ten_s = saved_from_ten(closed, _SLOW_STARTS[access][1])
        body.append(
            [
                title, f"{closed.gain_s:.2f}", f"{ten_s:.2f}",
                *(_minus(f"{row.end_to_end_s - row.split_s:+.2f}") for row in saved),
            ]
        )  # fmt: skip
    head = ["s", "closed form, from one packet", "from ten packets", *(f"{name}, 1 MB" for name in CONTROLS.values())]
    return _markdown(head, body)


def losing_table(objects: Sequence[ObjectRow], lines: Sequence[LineRow]) -> str:
    """Where a split loses, worst first: each object, and lines of equal loss together; the box of 256 KiB apart."""
    lost: list[tuple[float, list[str]]] = []
    for row in objects:
        if outcome(row) == "loses":
            where = f"{ACCESSES[row.access]}, {_size(row.size_bytes)}"
            lost.append((row.gain, [where, CONTROLS[row.server_control], _box(row.box), "", _gain(row)]))
    groups: dict[tuple[float, str, str], list[LineRow]] = defaultdict(list)
    for line in lines:
        if line.box != _SMALL_BOX:
            groups[line.loss_probability, line.server_control, line.box].append(line)
    for (loss, server, box), cells in groups.items():
        losing = [line for line in cells if outcome(line) == "loses"]
        if losing:
            worst = min(losing, key=lambda line: line.gain)
            share = f"{len(losing)} of {len(cells)}"
            where = f"lines, {100 * loss:g} % lost"
            lost.append((worst.gain, [where, CONTROLS[server], _box(box), share, _gain(worst)]))
    body = [entry for _, entry in sorted(lost, key=lambda entry: entry[0])]
    return _markdown(["where", "server", "box", "lines that lose", "gain, of the worst"], body, numbers_from=3)


def live_table(rows: Sequence[LiveRow]) -> str:
    """Live beside simulated."""
    body = [
        [
            row.cell, f"{CONTROLS[row.server_control]} → {CONTROLS[row.box]}",
            f"{row.live_end_to_end_bit_s / 1e6:.2f}", f"{row.simulated_end_to_end_bit_s / 1e6:.2f}",
            f"{row.live_split_bit_s / 1e6:.2f}", f"{row.simulated_split_bit_s / 1e6:.2f}",
            _with_interval(row.live_gain, row.live_low, row.live_high),
            _with_interval(row.simulated_gain, row.simulated_low, row.simulated_high),
            f"{row.quotient:.2f}", row.verdict,
        ]
        for row in rows
    ]  # fmt: skip
    head = [
        "cell", "server → box", "end to end, live", "simulated", "split, live", "simulated", "gain, live",
        "simulated", "live / simulated", "",
    ]  # fmt: skip
    return _markdown(head, body, numbers_from=2)


def _heads() -> list[str]:
    return [f"{CONTROLS[server]} → {CONTROLS[box]}" for server, box in SHOWN]


def _shown(rows: Sequence[Row]) -> list[str]:
    return [_gain(_find(rows, server, box)) for server, box in SHOWN]


def _find(rows: Sequence[Row], server: str, box: str) -> Row:
    return next(row for row in rows if (row.server_control, row.box) == (server, box))


def _gain(row: ObjectRow | LineRow) -> str:
    """Bold where the split loses."""
    text = _with_interval(row.gain, row.gain_low, row.gain_high)
    return f"**{text}**" if outcome(row) == "loses" else text


def _with_interval(gain: float, low: float, high: float) -> str:
    return f"{_signed(gain)} ({_bare(low)} to {_bare(high)})"


def _signed(share: float) -> str:
    return f"{_bare(share)} %"


def _bare(share: float) -> str:
    percent = round(100 * share)
    return _minus(f"{percent:+d}" if percent else "0")


def _minus(text: str) -> str:
    return text.replace("-", "\u2212")


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:g} MB" if size_bytes >= 1_000_000 else f"{size_bytes / 1e3:g} kB"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.0f} ms"


def _box(box: str) -> str:
    control, _, more = box.partition(", ")
    return CONTROLS[control] + (f", {more}" if more else "")


def _markdown(head: Sequence[str], body: Iterable[Sequence[str]], numbers_from: int = 1) -> str:
    rule = "|" + "---|" * numbers_from + "---:|" * (len(head) - numbers_from)
    return "\n".join([_line(head), rule, *(_line(cells) for cells in body)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
