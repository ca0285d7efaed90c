"""Chromium without a window for tests of pages: every complaint and every request of a page is kept."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

#: No request but the page's own, no graphics card, and no shared memory, which containers have little of: a page that
#: finds no room there hangs.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

#: On a busy machine a browser takes its time.
TIMEOUT_MS = 300_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser that all tests of a module share."""
    with sync_playwright() as playwright:
        # Its engine without windows, tabs and profiles takes a third less processor time.
        program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
        started = playwright.chromium.launch(executable_path=program, args=FLAGS, timeout=TIMEOUT_MS)
        yield started
        started.close()


class Visit:
    """A page that was opened, with everything that the browser complained about or asked for."""

    def __init__(self, browser: Browser, path: Path, **context: object) -> None:
        self.page: Page = browser.new_context(**context).new_page()  # type: ignore[arg-type]
        self.page.set_default_timeout(TIMEOUT_MS)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def draw_all(self) -> None:
        plots = self.page.locator("details.connection[open] .plot")
        for number in range(plots.count()):
            plots.nth(number).scroll_into_view_if_needed()
            self.page.wait_for_function(
                "n => document.querySelectorAll('.plot')[n].dataset.drawn === 'yes'", arg=number
            )


def colour_count(png: bytes) -> int:
    """Number of colours in a screenshot: few where nothing was drawn."""
    with Image.open(io.BytesIO(png)) as picture:
        colours = picture.convert("RGB").getcolors(picture.width * picture.height)
    assert colours is not None
    return len(colours)
