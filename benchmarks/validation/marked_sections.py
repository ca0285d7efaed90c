"""Sections of pages that programs write: what lies between `<!-- NAME: begin -->` and `<!-- NAME: end -->`."""

from __future__ import annotations

from pathlib import Path


def with_section(page: str, name: str, text: str) -> str:
    """The page with `text` as its marked section. Raises ValueError where the page has not both marks, each once."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, *sections = page.split(begin)
    parts = sections[0].split(end) if len(sections) == 1 else []
    if len(parts) != 2:
        raise ValueError(f"the page must have {begin} and then {end}, each once")
    return f"{before}{begin}\n{text.strip()}\n{end}{parts[1]}"


def write_section(path: Path, name: str, text: str) -> None:
    """Replace the marked section of the page at `path`. Raises ValueError as `with_section` does."""
    page = path.read_text(encoding="utf-8")
    path.write_text(with_section(page, name, text), encoding="utf-8")
