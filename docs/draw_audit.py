"""Draw the figure of the guide to audits: judge an archive and photograph its page's matrix and one cell's evidence.

    bash examples/providers/audit.sh cdma-i build/cdma-i && python docs/draw_audit.py build/cdma-i/runs/*.zip

Not part of `make docs`, since making the archive needs root. Needs what draw_figures.py needs.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from draw_figures import open_browser
from playwright.sync_api import sync_playwright

import pepscope
from reports.audit.page import write_audit_page

FIGURE = Path(__file__).parent / "figures" / "audit-matrix.png"


def draw(archive: str) -> None:
    """Write the figure."""
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        page_file = Path(directory) / "audit.html"
        write_audit_page(pepscope.audit([archive]), str(page_file))
        browser = open_browser(playwright)
        page = browser.new_page(viewport={"width": 900, "height": 760}, device_scale_factor=1.5)
        page.goto(page_file.as_uri())
        page.screenshot(path=str(FIGURE), clip={"x": 0, "y": 0, "width": 760, "height": 672})
        browser.close()


if __name__ == "__main__":
    draw(sys.argv[1])
