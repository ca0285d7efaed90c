"""What the site has beyond the pages of docs/: the schemas as a page, and links that stay within it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

DOCS = Path(__file__).parent
SCHEMAS = DOCS.parent / "pepscope" / "schemas"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
#: What the navigation lists by names behind mkdocs.yml's: pages, and folders with all their pages.
LISTED = {
    "Methods": ("methods",),
    "Experiments": ("experiments",),
    "Models": ("models",),
    "Papers": ("papers",),
    "Validation": ("validation.md", "validation"),
}
#: The list of decisions by room: the navigation has its sections.
DECISIONS = "decisions/index.md"


def on_config(config: Any) -> Any:
    """Add the pages of whole folders to the navigation."""
    for title, places in LISTED.items():
        config.nav.append({title: [page for place in places for page in _pages(place)]})
    config.nav.append({"Decisions": [DECISIONS, *_decisions_by_room()]})
    return config


def _decisions_by_room() -> list[dict[str, list[str]]]:
    """The notes below each heading of their list, by the heading without the folders in brackets."""
    _, *sections = re.split(r"^## ", (DOCS / DECISIONS).read_text(encoding="utf-8"), flags=re.M)
    return [
        {section.partition("\n")[0].partition(" (")[0]: [f"decisions/{link[3]}" for link in _LINK.finditer(section)]}
        for section in sections
    ]


def _pages(place: str) -> list[str]:
    """A page, or the pages of a folder, by their paths below docs/."""
    inside = (DOCS / place).glob("*.md")
    return [place] if place.endswith(".md") else sorted(page.relative_to(DOCS).as_posix() for page in inside)


def on_files(files: Files, config: Any) -> Files:
    """Add the page of the schemas, made from the files that the package carries."""
    files.append(File.generated(config, "schemas.md", content=schemas_page()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leave of a link to a file outside docs/ its text: the site does not have the source tree."""
    folder = PurePosixPath(page.file.src_uri).parent

    def inside(found: re.Match[str]) -> str:
        target = os.path.normpath(folder / found[3])
        is_page = Path(target).suffix in {".md", ".png", ".svg", ".csv"}
        leaves = "://" not in found[3] and (target.startswith("..") or not is_page)
        return found[2] if leaves and not found[1] else found[0]

    pieces = re.split(r"(```.*?```)", markdown, flags=re.S)
    return "".join(piece if piece.startswith("```") else _LINK.sub(inside, piece) for piece in pieces)


def schemas_page() -> str:
    """Each JSON Schema with its title, what it promises, and its text."""
    parts = ["# Schemas\n\nWhat `--json` and `--jsonl` write.\n"]
    for path in sorted(SCHEMAS.glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        parts.append(f"## {path.stem}\n\n{schema['title']}. {schema['description']}\n")
        parts.append(f"```json\n{path.read_text(encoding='utf-8').rstrip()}\n```\n")
    return "\n".join(parts)
