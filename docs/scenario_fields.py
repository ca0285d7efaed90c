"""Writes the fields of scenarios into docs/scenarios.md, from the comments beside the code that reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).with_name("scenarios.md")
BEGIN, END = "<!-- fields: begin -->\n", "<!-- fields: end -->\n"
CRATES = Path(__file__).parents[1] / "crates"
SOURCE = CRATES / "drive" / "src"
CONTROLS = CRATES / "tcp" / "src" / "control.rs"
LINKS = SOURCE / "links.rs"


@dataclass(frozen=True, slots=True)
class Part:
    """One heading and the comment that stands below it."""

    level: int
    heading: str
    file: str
    #: The function whose comment it is; none for the file's own.
    item: str | None

    @property
    def anchor(self) -> str:
        """What links to the heading are called."""
        return re.sub(r"[^a-z0-9 -]", "", self.heading.lower()).replace(" ", "-")


def _listed(file: Path, macro: str) -> list[str]:
    """The files that a macro of the Rust code lists: the first word of each line."""
    listed = re.search(rf"^{macro}! {{\n(.*?)^}}", file.read_text(encoding="utf-8"), re.S | re.M)
    if listed is None:
        raise SystemExit(f"{file} has no list {macro}")
    return re.findall(r"^ *(\w+)", listed[1], re.M)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of link, from its file: `//! Title: summary.` and `KIND`."""

    file: str
    title: str
    summary: str
    kind: str


def _link_kind(file: str) -> Kind:
    source = (SOURCE / f"{file}.rs").read_text(encoding="utf-8")
    head = re.match(r"//! (.*?): (.*?)\.\n", source)
    kind = re.search(r'const KIND: &\'static str = "(.*?)"', source)
    if head is None or kind is None:
        raise SystemExit(f"{file}.rs does not begin with `//! Title: summary.`, or has no KIND")
    return Kind(file, head[1], head[2], kind[1])


LINK_KINDS = tuple(_link_kind(f"links/{file}") for file in _listed(LINKS, "links"))

#: What the comment of a link's `read` refers to, by the link's file.
LINK_PARTS = {
    "links/wired": (Part(4, "Losses", "links/buffer", "read_loss"),),
    "links/variable_rate": (Part(4, "Rates and traces", "links/variable_rate/rates", "read_rates"),),
    "links/managed": (
        Part(4, "Disciplines of queues", "links/managed", "read_queue"),
        Part(4, "Traffic of others", "links/managed", "read_cross"),
    ),
    "links/umts_dch": (Part(4, "RLC of dedicated channels", "links/umts_dch", "read_radio_link_control"),),
    "links/hsdpa": (
        Part(4, "Hybrid ARQ of HSDPA", "links/hsdpa", "read_hybrid_arq"),
        Part(4, "Radio of HSDPA", "links/hsdpa/radio", "read_radio"),
        Part(4, "Terminals of HSDPA", "links/hsdpa/terminal", "read_terminals"),
    ),
    "links/lte": (
        Part(4, "Hybrid ARQ of LTE", "links/lte", "read_hybrid_arq"),
        Part(4, "Terminals of LTE", "links/lte", "read_terminals"),
        Part(4, "Fading of LTE", "links/lte", "read_fading"),
    ),
}

HOPS = Part(3, "Hops", "scenario/path", "read")
PARTS = (
    Part(3, "The scenario", "scenario/mod", None),
    Part(3, "Ends", "scenario/endpoint", "read_endpoint"),
    Part(4, "Congestion controls", "control", "CONGESTION_CONTROLS"),
    Part(4, "Times of a machine", "scenario/times", "read_times"),
    Part(4, "A time", "scenario/times", "time_of"),
    HOPS,
    *(part for kind in LINK_KINDS for part in (Part(4, kind.title, kind.file, "read"), *LINK_PARTS.get(kind.file, ()))),
    Part(4, "Middleboxes", "scenario/path", "read_rewriter"),
    Part(4, "Links in Python", "scenario/path", "read_plug_in"),
    Part(4, "Proxies", "scenario/proxy", "read_proxy"),
    Part(4, "Machines of proxies", "scenario/machine", "read_machine"),
    Part(4, "Local acknowledgers", "scenario/acknowledger", "read_acknowledger"),
    Part(4, "Control law of the window-adaptation proxy", "scenario/proxy", "read_adaptation"),
    Part(3, "Traffic", "scenario/traffic", "read"),
    Part(4, "How a side reads and gives up", "scenario/traffic", "read_manner"),
    Part(4, "Speech", "scenario/voice", "read_voice"),
    Part(4, "Applications", "scenario/applications", "read_application"),
    Part(4, "How applications are secured", "scenario/applications/security", "read_security"),
    Part(4, "Web pages", "scenario/applications/web", "read"),
    Part(4, "Objects of a page", "scenario/applications/web", "read_objects"),
    Part(4, "Video", "scenario/applications/video", "read"),
    Part(4, "Chat", "scenario/applications/chat", "read"),
    Part(4, "QUIC", "scenario/applications/quic", "read"),
    Part(4, "Echo", "scenario/applications/ping", "read"),
    Part(4, "Applications in Python", "scenario/applications/plug_in", "read"),
    Part(3, "What is recorded", "scenario/record", "read"),
    Part(4, "Taps", "scenario/record", "read_tap"),
    Part(4, "Clocks", "scenario/record", "read_clock"),
)


def scenario_fields() -> str:
    """All parts, one after the other."""
    return "\n\n".join(f"{'#' * part.level} {part.heading}\n\n{_text(part)}" for part in PARTS)


def _text(part: Part) -> str:
    if part.item == "CONGESTION_CONTROLS":
        return _controls()
    lines = _comment(part)
    end = next((number for number, line in enumerate(lines) if line.startswith("# Errors")), len(lines))
    text = "\n".join(lines[:end]).strip()
    if part == HOPS:
        text = text.replace("|---|---|\n", "|---|---|\n" + _link_rows(), 1)
    if text.startswith("Reads "):
        text = text.removeprefix("Reads ")
        text = text[0].upper() + text[1:]
    return re.sub(r"\[`([\w:]+)`\]", lambda found: _link(found[1], part), text)


def _link_rows() -> str:
    parts = {part.file: part for part in PARTS if part.item == "read"}
    rows = (f"| `{kind.kind}` | {kind.summary}, see {_reference(parts[kind.file])} |\n" for kind in LINK_KINDS)
    return "".join(rows)


def _controls() -> str:
    """A table of what the files that `congestion_controls!` lists offer."""
    rows = ["| `control` | what it is |", "|---|---|"]
    for file in _listed(CONTROLS, "congestion_controls"):
        source = CONTROLS.with_suffix("").joinpath(f"{file}.rs").read_text(encoding="utf-8")
        kinds = re.findall(r'ControlKind::new\(\s*"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)"', source)
        rows += [f"| `{name}` | {summary} |".replace('\\"', '"') for name, summary in kinds]
    return "\n".join(rows)


def _comment(part: Part) -> list[str]:
    lines = (SOURCE / f"{part.file}.rs").read_text(encoding="utf-8").splitlines()
    if part.item is None:
        head = [line[3:].strip() for line in lines if line.startswith("//!")]
        return head[next(number for number, line in enumerate(head) if line.startswith("|")) :]
    place = next(number for number, line in enumerate(lines) if re.search(rf"\bfn {part.item}\(", line))
    comment: list[str] = []
    while lines[place - 1].strip().startswith(("///", "#[")):
        place -= 1
        if lines[place].strip().startswith("///"):
            comment.insert(0, lines[place].strip()[3:].strip())
    return comment


def _link(name: str, part: Part) -> str:
    """A link to the part that a name of the code stands for."""
    last = name.split("::")[-1]
    folder = part.file.split("/")[:2]
    near = [one for one in PARTS if one.item == last and one.file.split("/")[:2] == folder]
    found = near or [one for one in PARTS if last in (one.item, one.file.split("/")[-1])]
    if not found:
        raise SystemExit(f"the comment of {part.heading} names {name}, which has no place in the guide")
    return _reference(found[0])


def _reference(part: Part) -> str:
    heading = part.heading
    words = heading if heading[1].isupper() else heading[0].lower() + heading[1:]
    return f"[{words}](#{part.anchor})"


def page() -> str:
    """The whole page, with the fields as they are now."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{scenario_fields()}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
