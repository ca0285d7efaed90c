"""Every connection of the page's table as columns of texts, which the page's script unpacks and shows.

A column is the list of its distinct texts, in the order in which the table sorts them, and a code a row. The script so
needs no rules of writing numbers: it sorts by codes, and searches each distinct text once. The page holds the digits
that it shows; connections that look alike in a column keep their rank.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pepscope.results.evidence.growing import TextColumn
from pepscope.results.pair_table import PairTable
from pepscope.results.pairs.columns import JUDGED
from pepscope.results.verdicts import SPLIT_VERDICTS, Verdict
from reports.detection.ranking import KINDS_IN_ORDER
from reports.document import compressed
from reports.quantities import format_bytes, format_percent, format_seconds

Value = TypeVar("Value", int, float)

#: An endpoint that ends with a port; the port has a column of its own, since ports differ and addresses recur.
_WITH_PORT = re.compile(r"(.*:)([1-9][0-9]{0,4})", re.DOTALL)
_NUMBER = re.compile(r"([0-9]+)")

#: Stands for the probability of a connection that was not decided.
_UNDECIDED = -1.0


def connection_columns(pairs: PairTable, order: Sequence[int], linked: int, *, one_vantage: bool) -> str:
    """The element that `connections.js` reads: the connections at `order`, of which the first `linked` have a section.

    The probability of a split from `one_vantage` is that of a split of either kind. Nothing in it comes from a capture
    as it is: texts are compressed and in base64.
    """
    columns, rows = pairs.columns, [pairs.rows[place] for place in order]
    up, down = columns.payload_bytes
    verdicts = columns.verdict.of(rows)
    document = {
        "rows": len(rows),
        "linked": list(order[:linked]),
        "kinds": [kind.value for kind in KINDS_IN_ORDER],
        "verdict": _packed_codes([KINDS_IN_ORDER.index(kind) for kind in verdicts]),
        "client": _endpoints(columns.vantages[0].client, rows),
        "server": _endpoints(columns.vantages[0].server, rows),
        "probability": _quantities(
            [_share(pairs, row, kind, one_vantage) for row, kind in zip(rows, verdicts, strict=True)], _write_share
        ),
        "payload": _quantities([up[row] + down[row] for row in rows], format_bytes),
        "duration": _quantities([columns.duration_s[row] for row in rows], format_seconds),
        "reason": _texts([*columns.reasons(rows)]),
    }
    text = json.dumps(document, separators=(",", ":"))
    return f'<script type="application/json" id="connection-columns">{text}</script>\n'


def _share(pairs: PairTable, row: int, kind: Verdict, one_vantage: bool) -> float:
    if kind is Verdict.INCONCLUSIVE:
        return _UNDECIDED
    kinds = SPLIT_VERDICTS if one_vantage and kind.is_split else (kind,)
    shares = [pairs.columns.probability[JUDGED.index(each)][row] for each in kinds]
    return sum(share for share in shares if not np.isnan(share))


def _write_share(share: float) -> str:
    return "–" if share == _UNDECIDED else format_percent(share)


def _quantities(values: list[Value], write: Callable[[Value], str]) -> dict[str, str]:
    """A column of numbers; those that are written alike, which lie side by side, share a code."""
    texts: list[str] = []
    code_of: dict[Value, int] = {}
    for value in sorted(set(values)):
        text = write(value)
        if not texts or texts[-1] != text:
            texts.append(text)
        code_of[value] = len(texts) - 1
    return {"texts": _packed_texts(texts), "codes": _packed_codes([code_of[value] for value in values])}


def _endpoints(column: TextColumn, rows: list[int]) -> dict[str, str]:
    """A column of addresses with ports; port 0 where an endpoint has none that is written like one."""
    hosts, ports = [], []
    for row in rows:
        text = column[row]
        found = _WITH_PORT.fullmatch(text)
        hosts.append(found[1] if found else text)
        ports.append(int(found[2]) if found else 0)
    return {**_texts(hosts, _by_numbers), "ports": _packed_codes(ports)}


def _texts(texts: list[str], key: Callable[[str], object] | None = None) -> dict[str, str]:
    distinct = sorted(set(texts), key=key)  # type: ignore[arg-type]  # keys of one kind compare
    code_of = {text: code for code, text in enumerate(distinct)}
    return {"texts": _packed_texts(distinct), "codes": _packed_codes([code_of[text] for text in texts])}


def _by_numbers(text: str) -> list[tuple[int, str]]:
    """Sort key under which `10.0.0.9:` precedes `10.0.0.10:`; longer runs of digits are greater numbers."""
    return [(len(part.lstrip("0")), part) if place % 2 else (0, part) for place, part in enumerate(_NUMBER.split(text))]


def _packed_texts(texts: list[str]) -> str:
    return compressed(json.dumps(texts, separators=(",", ":")).encode("ascii"))


def _packed_codes(codes: list[int]) -> str:
    """Codes as planes of bytes, the lowest first, as many as the greatest code needs: planes compress better."""
    values: npt.NDArray[np.uint32] = np.array(codes, dtype="<u4")
    width = (int(values.max(initial=0)).bit_length() + 7) // 8
    return compressed(values.view(np.uint8).reshape(-1, 4)[:, :width].T.tobytes())
