"""What a watch knows, in a file from which the next run goes on: evidence and what was judged, written at once."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

import pepscope
from detector.corpora.watch.evidence_pool import Evidence
from detector.one_capture.columns import VantageColumns
from pepscope.captures.exchanges import Exchanges, RoundTripColumns
from pepscope.captures.references import References
from pepscope.captures.senders import Senders
from pepscope.errors import UsageError
from pepscope.whole_file import whole_file

_FORM = 2
_PARTS: tuple[tuple[str, type[Struct]], ...] = (
    ("exchanges", Exchanges), ("round_trips", RoundTripColumns), ("references", References), ("senders", Senders)
)  # fmt: skip

Arrays = dict[str, npt.NDArray[Any]]


def write_state(path: Path, of_source: str, source: Mapping[str, object], evidence: Evidence | None) -> None:
    """Write the state; what was there stays until it is whole. Raises UsageError."""
    head = {"form": _FORM, "version": pepscope.__version__, "of": of_source, "source": source}
    arrays: Arrays = {"head": np.frombuffer(json.dumps(head).encode(), np.uint8)}
    if evidence is not None:
        arrays |= _arrays(evidence)
    try:
        with whole_file(path, mode=0o600, durable=True) as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]
    except OSError as error:
        raise UsageError(f"the state {path} cannot be written: {error.strerror}") from None


def read_state(path: Path, of_source: str) -> tuple[dict[str, Any], Evidence | None]:
    """What an earlier run left; nothing where there is no file.

    Raises UsageError where it cannot be read, and where it is of another version or of another source.
    """
    if not path.exists():
        return {}, None
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as content:
            arrays = dict(content)
        head = json.loads(arrays.pop("head").tobytes())
        if (head["form"], head["version"]) != (_FORM, pepscope.__version__):
            raise UsageError(f"the state {path} is of pepscope {head['version']}: remove it to begin anew")
        if head["of"] != of_source:
            raise UsageError(f"the state {path} is of {head['of']}, not of {of_source}: give each source its own")
        return head["source"], _evidence(arrays) if arrays else None
    except UsageError:
        raise
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError(f"the state {path} cannot be read ({error}): remove it to begin anew") from None


def _arrays(evidence: Evidence) -> Arrays:
    vantage = evidence.vantage
    arrays: Arrays = {"rank": evidence.rank}
    arrays |= {f"columns.{name}": column for name, column in vantage.columns.items()}
    held = {
        "exchanges": vantage.exchanges, "round_trips": vantage.exchanges.round_trips,
        "references": vantage.references, "senders": vantage.senders,
    }  # fmt: skip
    for part, kind in _PARTS:
        arrays |= {f"{part}.{name}": getattr(held[part], name) for name in _names(kind)}
    return arrays


def _evidence(arrays: Arrays) -> Evidence:
    parts = {
        part: {name: arrays[f"{part}.{name}"] for name in _names(kind)} for part, kind in _PARTS
    }  # fmt: skip
    columns = {name.partition(".")[2]: column for name, column in arrays.items() if name.startswith("columns.")}
    rank = arrays["rank"]
    vantage = VantageColumns(
        (), columns, np.zeros(len(rank), np.int64),
        Exchanges(**parts["exchanges"], round_trips=RoundTripColumns(**parts["round_trips"])),
        References(**parts["references"]), Senders(**parts["senders"]),
    )  # fmt: skip
    return Evidence(vantage, rank)


def _names(kind: type[Struct]) -> list[str]:
    return [name for name in kind.__struct_fields__ if name != "round_trips"]
