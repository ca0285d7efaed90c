"""Puts what `pepscope reproduce` wrote into docs/papers: the statements of each paper, its figures, and searches.

`docs/paper_tables.py DIR`, where DIR is that of the command. Papers and searches that DIR does not have are left
as they are.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from papers.library import PAPERS

PAGES = Path(__file__).with_name("papers")
OPEN_PARAMETERS = "open-parameters.md"


def write_tables(directory: Path, pages: Path = PAGES) -> list[str]:
    """Names of what was put into pages. Raises SystemExit for a page without the place of a table."""
    written = []
    for paper in PAPERS:
        statements = directory / paper / "statements.md"
        if statements.is_file():
            _replace(pages / f"{paper}.md", "statements", statements.read_text(encoding="utf-8"))
            written.append(f"{paper}: statements")
        for figure in sorted((pages / "figures" / paper).glob("*.svg")):
            drawn = directory / paper / "figures" / figure.name
            if drawn.is_file():
                shutil.copyfile(drawn, figure)
                written.append(f"{paper}: {figure.name}")
        for search in sorted((directory / paper / "search").glob("*.md")):
            _replace(pages / OPEN_PARAMETERS, f"search {search.stem}", search.read_text(encoding="utf-8"))
            written.append(f"{paper}: search {search.stem}")
    return written


def _replace(page: Path, place: str, text: str) -> None:
    """Put `text` between the marks of a place."""
    begin, end = f"<!-- {place}: begin -->\n", f"<!-- {place}: end -->\n"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"{page} must have the lines {begin.strip()} and {end.strip()}, got none")
    page.write_text(f"{before}{begin}\n{text.strip()}\n\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(f"usage: {sys.argv[0]} DIR, where DIR is that of `pepscope reproduce all --full -o DIR`")
    for name in write_tables(Path(sys.argv[1])):
        print(name)
