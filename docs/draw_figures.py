"""Draw the documentation's figures: judge captures of the corpus, open the page, photograph one figure of each.

Run by `make docs`; needs Debian's chromium-headless-shell, or chromium, and the development tools.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from detector.detection import detect
from reports.detection.page import write_page

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "tests" / "corpus"
ONE_ENDED = ROOT / "tests" / "one_ended"
FIGURES = ROOT / "docs" / "figures"
#: Containers have little shared memory: a page that finds no room there hangs.
_FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run",
)  # fmt: skip
#: On a busy machine a page takes its time.
_TIMEOUT_MS = 300_000


@dataclass(frozen=True, slots=True)
class Drawing:
    """One figure of the docs: a run of the corpus and the title that the page gives the figure."""

    name: str
    run: str
    title: str
    ends: tuple[str, ...] = ("srv", "mob")
    folder: Path = CORPUS


CLOUDS = "Can one clock explain both data and acknowledgements?"
SEQUENCE = "Time and sequence at both ends"
DELAY = "One-way delay of each packet, in sending order"
ROUND_TRIP = "Round-trip time at the sender"
WINDOW = "Receive window"
GROUPS = "Groups"  # the table, which is no figure
EXCHANGES = "How long do answers take, and how long the transport?"
REFERENCE = "What no TCP split shortens: the reference"
HANDSHAKES = "Handshake times by host"

DRAWINGS = (
    Drawing("split-clouds", "spl_ha_dl_large_umts", CLOUDS),
    Drawing("regular-clouds", "reg_dl_nat", CLOUDS),
    Drawing("split-sequence", "spl_ha_dl_small_umts", SEQUENCE),
    Drawing("proxy-sequence", "prx_ngx_2M_umts", SEQUENCE),
    Drawing("regular-sequence", "reg_dl_nat", SEQUENCE),
    Drawing("split-delay", "spl_ha_dl_large_umts", DELAY),
    Drawing("held-acks-split", "act_ha_ul_T2", ROUND_TRIP),
    Drawing("held-acks-regular", "act_reg_ul_T2", ROUND_TRIP),
    Drawing("split-window", "spl_ha_dl_small_umts", WINDOW),
    Drawing("slow-reader-window", "reg_dl_slowreader_rate", WINDOW),
    Drawing("abort-sequence", "spl_ha_dl_abort", SEQUENCE),
    Drawing("rewritten-sequence", "prx_ngx_upload_strict", SEQUENCE),
    Drawing("early-fin-sequence", "prx_ngx_cache", SEQUENCE),
    Drawing("parallel-delay", "prx_ngx_par6", DELAY),
    Drawing("one-end-round-trip", "spl_ha_dl_large_umts", ROUND_TRIP, ("srv",)),
    Drawing("short-transfers-group", "spl_ha_dl_short10k", GROUPS),
    Drawing("exchanges-split", "lte-split", EXCHANGES, ("mobile",), ONE_ENDED),
    Drawing("exchanges-regular", "lte-none", EXCHANGES, ("mobile",), ONE_ENDED),
    Drawing("reference-split", "lte-split", REFERENCE, ("mobile",), ONE_ENDED),
    Drawing("handshakes-split", "lte-split", HANDSHAKES, ("mobile",), ONE_ENDED),
    Drawing("handshakes-regular", "lte-none", HANDSHAKES, ("mobile",), ONE_ENDED),
)


def main() -> None:
    """Draw them all."""
    FIGURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = open_browser(playwright)
        page = browser.new_page(viewport={"width": 1100, "height": 900}, color_scheme="light")
        page.set_default_timeout(_TIMEOUT_MS)
        for drawing in DRAWINGS:
            _draw(page, drawing, Path(folder) / f"{drawing.name}.html")
        browser.close()


def open_browser(playwright: Playwright) -> Browser:
    """Chromium without a window."""
    program = which("chromium-headless-shell") or which("chromium")
    return playwright.chromium.launch(executable_path=program, args=_FLAGS, timeout=_TIMEOUT_MS)


def _draw(page: Page, drawing: Drawing, path: Path) -> None:
    captures = [str(next(drawing.folder.glob(f"{drawing.run}.{end}.pcap*.gz"))) for end in drawing.ends]
    write_page(detect(*captures, series=True), path)
    page.goto(path.as_uri())
    if drawing.title == GROUPS:
        page.locator("#groups").screenshot(path=FIGURES / f"{drawing.name}.png")
        return
    figure = page.locator("figure", has_text=drawing.title).first
    figure.scroll_into_view_if_needed()
    figure.locator(".main-svg").first.wait_for()
    page.wait_for_timeout(500)
    figure.locator(".plot").screenshot(path=FIGURES / f"{drawing.name}.png")
    print(f"docs/figures/{drawing.name}.png")


if __name__ == "__main__":
    main()
