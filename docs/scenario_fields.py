"""Writes the fields of scenarios into docs/scenarios.md, from the comments beside the code that reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).with_name("scenarios.md")
BEGIN, END = "<!-- fields: begin -->\n", "<!-- fields: end -->\n"
SOURCE = Path(__file__).parents[1] / "crates" / "drive" / "src" / "scenario"


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


PARTS = (
    Part(3, "The scenario", "mod", None),
    Part(3, "Ends", "endpoint", "read_endpoint"),
    Part(3, "Hops", "path", "read"),
    Part(4, "Wired links", "link", "read_wired"),
    Part(4, "Losses", "link", "read_loss"),
    Part(4, "Links of variable rate", "link", "read_variable_rate"),
    Part(4, "Rates and traces", "link", "read_rates"),
    Part(4, "UMTS dedicated channels", "umts_dch", "read_umts_dch"),
    Part(4, "RLC of dedicated channels", "umts_dch", "read_radio_link_control"),
    Part(4, "HSDPA cells", "hsdpa", "read_hsdpa"),
    Part(4, "Hybrid ARQ of HSDPA", "hsdpa", "read_hybrid_arq"),
    Part(4, "Radio of HSDPA", "hsdpa_radio", "read_radio"),
    Part(4, "Terminals of HSDPA", "hsdpa_terminal", "read_terminals"),
    Part(4, "LTE cells", "lte", "read_lte"),
    Part(4, "Hybrid ARQ of LTE", "lte", "read_hybrid_arq"),
    Part(4, "Terminals of LTE", "lte", "read_terminals"),
    Part(4, "Fading of LTE", "lte", "read_fading"),
    Part(4, "Middleboxes", "path", "read_rewriter"),
    Part(4, "Proxies", "proxy", "read_proxy"),
    Part(4, "Control law of the window-adaptation proxy", "proxy", "read_adaptation"),
    Part(3, "Traffic", "traffic", "read"),
    Part(4, "How a side reads and gives up", "traffic", "read_manner"),
    Part(4, "Speech", "traffic", "read_voice"),
    Part(3, "What is recorded", "record", "read"),
    Part(4, "Taps", "record", "read_tap"),
    Part(4, "Clocks", "record", "read_clock"),
)


def scenario_fields() -> str:
    """All parts, one after the other."""
    return "\n\n".join(f"{'#' * part.level} {part.heading}\n\n{_text(part)}" for part in PARTS)


def _text(part: Part) -> str:
    lines = _comment(part)
    end = next((number for number, line in enumerate(lines) if line.startswith("# Errors")), len(lines))
    text = "\n".join(lines[:end]).strip()
    if text.startswith("Reads "):
        text = text.removeprefix("Reads ")
        text = text[0].upper() + text[1:]
    return re.sub(r"\[`([\w:]+)`\]", lambda found: _link(found[1], part), text)


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
    near = [one for one in PARTS if one.item == last and one.file.split("_")[0] == part.file.split("_")[0]]
    found = near or [one for one in PARTS if last in (one.item, one.file)]
    if not found:
        raise SystemExit(f"the comment of {part.heading} names {name}, which has no place in the guide")
    heading = found[0].heading
    words = heading if heading[1].isupper() else heading[0].lower() + heading[1:]
    return f"[{words}](#{found[0].anchor})"


def page() -> str:
    """The whole page, with the fields as they are now."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{scenario_fields()}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
