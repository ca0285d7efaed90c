"""Copies of captures with comments on the packets that show what was found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from detector.detection import detect, detect_vantage
from detector.presentation.requested import RequestedPackets
from pepscope.captures.connections import address_of
from pepscope.captures.files.annotated import Comments, write_annotated
from pepscope.captures.files.digest import file_state
from pepscope.errors import PepscopeError, UsageError
from pepscope.results.attention import ATTENTION
from pepscope.results.frames import unicode_name
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import CaptureSummary, DetectionResult, Evidence, GroupSide, Outcome, PairResult

#: Verdicts in the comment of a file; Wireshark shows it as one text.
_VERDICTS = 20

#: What a capture's name may end with; copies are pcapng and not compressed.
_ENDINGS = (".gz", ".zst", ".zstd", ".xz", ".bz2", ".lz4", ".snoop", ".pcap", ".pcapng", ".cap", ".dmp", ".ntar")


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy: the capture it was made of, its path, its frames, how many of them bear comments, and remarks."""

    capture: str
    path: Path
    frames: int
    commented: int
    notes: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """As JSON has it (`pepscope/schemas/annotate-1.json`)."""
        return {
            "capture": self.capture,
            "copy": str(self.path),
            "frames": self.frames,
            "commented": self.commented,
            "notes": list(self.notes),
        }


def annotate_captures(
    paths: Sequence[str],
    directory: Path,
    *,
    connections: Sequence[str] = (),
    moments: int,
    one_vantage: bool,
    filter: str | None = None,  # noqa: A002
    memory_bytes: int | None = None,
    replace: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> list[Copy]:
    """Judge captures, and copy each to `directory` with comments on the packets of `moments` for each finding.

    `connections` are those to comment on: places, addresses or `address:port` of one end; without any the thousand that
    deserve attention most.

    Copies that are there already are replaced only with `replace`, which writes over nothing else.

    Raises UsageError for a directory with other files, for connections that there are not, and as `detect` does.
    """
    targets = _targets(paths, directory, replace)
    states = {path: file_state(path) for path in paths}
    asked = RequestedPackets(moments, choose=_Chosen(connections) if connections else None)
    if one_vantage:
        result = detect_vantage(
            paths, filter=filter, memory_bytes=memory_bytes, packets=asked, progress=progress
        )  # fmt: skip
    else:
        result = detect(*paths, filter=filter, memory_bytes=memory_bytes, packets=asked, progress=progress)
    chosen = [place for place, pair in enumerate(_pairs_with_packets(result)) if pair]
    comments = _comments(result, chosen, with_groups=not connections)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PepscopeError(f"{directory} cannot be made: {error.strerror}") from error
    made = []
    for summary, target in zip(result.captures, targets, strict=True):
        frames = comments[summary.path]
        copied = write_annotated(
            summary.path,
            target,
            Comments(unicode_name(_of_file(result, summary, chosen)), _of_interface(result, chosen), frames),
            states[summary.path],
            progress,
        )
        notes = [copied.damage] if copied.damage else []
        if copied.without_room:
            numbers = ", ".join(map(str, copied.without_room[:10]))
            notes.append(f"{summary.path} has simple packet blocks, which have no room for comments: frames {numbers}")
        made.append(
            Copy(summary.path, target, copied.frames, len(frames) - len(copied.without_room), tuple(notes))
        )  # fmt: skip
    return made


def _targets(paths: Sequence[str], directory: Path, replace: bool) -> list[Path]:
    """Where the copies go. Raises UsageError for a directory that holds anything else, or copies not to be replaced."""
    names = list(_names(paths))
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"the output must be a directory, and {directory} is a file")
    held = sorted(path.name for path in directory.iterdir()) if directory.exists() else []
    if others := [name for name in held if name not in names]:
        more = "" if len(others) == 1 else f" and {len(others) - 1} more"
        raise UsageError(f"the output directory must be new or empty, and {directory} holds {others[0]}{more}")
    targets = [directory / name for name in names]
    there = [target for target in targets if target.exists()]
    if sources := [path for path in paths if Path(path).exists() and any(map(Path(path).samefile, there))]:
        raise UsageError(f"the output must be another directory than that of {sources[0]}, which a copy would replace")
    if held and not replace:
        raise UsageError(
            f"{directory / held[0]} is there already: give another output directory, or --force to write over it"
        )
    return targets


def _names(paths: Iterable[str]) -> Iterator[str]:
    """A name for each copy, after its capture; a number where captures have one name in several directories."""
    seen: Counter[str] = Counter()
    for path in paths:
        stem = Path(path).name
        while stem.lower().endswith(_ENDINGS) and Path(stem).stem:
            stem = Path(stem).stem
        seen[stem] += 1
        yield f"{stem}.pcapng" if seen[stem] == 1 else f"{stem}-{seen[stem]}.pcapng"


class _Chosen:
    """The connections that a user names."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def __call__(self, results: PairTable) -> list[int]:
        """Their places. Raises UsageError for a name that no connection has."""
        return sorted({place for name in self._names for place in self._places(name, results)})

    def _places(self, name: str, results: PairTable) -> list[int]:
        if name.isdecimal():
            if int(name) >= len(results):
                raise UsageError(f"the connection must be below {len(results)}, as many as there are, got {name}")
            return [int(name)]
        found = [
            place
            for place, row in enumerate(results.rows)
            if any(
                vantage.capture[row] is not None and _is_end(name, vantage.client[row], vantage.server[row])
                for vantage in results.columns.vantages
            )
        ]
        if not found:
            raise UsageError(f"no connection has the end {name}: give a number, an address or ADDRESS:PORT")
        return found


def _is_end(name: str, *ends: str) -> bool:
    return any(name in (end, address_of(end)) for end in ends)


def _pairs_with_packets(result: DetectionResult) -> Iterator[bool]:
    table = PairTable.of(result.pairs)
    return (table.packets_of_row(row) is not None for row in table.rows)


def _comments(result: DetectionResult, chosen: Sequence[int], *, with_groups: bool) -> dict[str, dict[int, str]]:
    """Comments by capture and frame: what the packet shows, for which findings, of which connection or group."""
    found: dict[str, dict[int, dict[tuple[str, str], list[str]]]] = defaultdict(lambda: defaultdict(dict))

    def add(evidence: Sequence[Evidence], of: str) -> None:
        decided = [item for item in evidence if item.outcome is not Outcome.INAPPLICABLE]
        for item in decided or evidence:
            for packet in item.packets or ():
                findings = found[packet.capture][packet.frame].setdefault((packet.shows, of), [])
                if item.finding not in findings:
                    findings.append(item.finding)

    for place in chosen:
        pair = result.pairs[place]
        add(pair.evidence, f"connection {place}: {pair.verdict.value}")
    for group in result.groups if with_groups else ():
        # What both captures show of a group is what they show of its connections.
        if group.side is not GroupSide.BOTH:
            add(group.evidence, f"port {group.port}, clients in {group.network}: {group.verdict.value}")
    return {
        summary.path: {
            frame: "\n".join(f"{shows} [{', '.join(findings)}; {of}]" for (shows, of), findings in texts.items())
            for frame, texts in found[summary.path].items()
        }
        for summary in result.captures
    }


def _of_interface(result: DetectionResult, chosen: Sequence[int]) -> str:
    """The verdicts counted."""
    counts = Counter(result.pairs[place].verdict.value for place in chosen)
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    return f"pepscope judged {len(chosen)} connection{'' if len(chosen) == 1 else 's'} of this capture: {said}"


def _of_file(result: DetectionResult, summary: CaptureSummary, chosen: Sequence[int]) -> str:
    """What was copied by what, and the verdicts with their reasons, those first that deserve attention."""
    version = "" if result.tool is None else f" {result.tool.version}"
    lines = [f"Copy of {summary.path} (SHA-256 {summary.sha256}) with comments by pepscope{version}."]
    for group in result.groups:
        if len(group.pairs) > 1 and set(group.pairs) <= set(chosen):
            lines.append(f"Port {group.port}, clients in {group.network}: {group.verdict.value}. {group.reason}")
    ordered = sorted(chosen, key=lambda place: ATTENTION[result.pairs[place].verdict])
    lines += [_of_pair(place, result.pairs[place]) for place in ordered[:_VERDICTS]]
    if len(ordered) > _VERDICTS:
        lines.append(f"{len(ordered) - _VERDICTS:,} more connections were judged.")
    return "\n".join(lines)


def _of_pair(place: int, pair: PairResult) -> str:
    first = pair.vantages[0]
    return f"Connection {place}, {first.client} -> {first.server}: {pair.verdict.value}. {pair.reason}"
