"""The documentation as a site: every link leads somewhere, and what is made from code and schemas is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest
from playwright.sync_api import Browser

from tests.browser import Visit, browser

__all__ = ["browser"]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", place],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return place


def test_every_page_of_the_documentation_is_a_page_of_the_site(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    assert len(pages) > 50
    assert [page for page in pages if not (site / page).is_file()] == []


def test_links_and_pictures_of_the_site_lead_to_files_of_it(site: Path) -> None:
    checked = 0
    for page in site.rglob("*.html"):
        if page.name == "404.html":
            continue
        for target in re.findall(r'(?:href|src)="([^"#?]+)', page.read_text(encoding="utf-8")):
            if not re.match(r"[a-z]+:|//", target):
                checked += 1
                assert (page.parent / unquote(target)).exists(), f"{page.relative_to(site)}: {target}"
    assert checked > 1000


def test_the_reference_and_the_schemas_are_made_from_the_code(site: Path) -> None:
    reference = (site / "api.html").read_text(encoding="utf-8")
    assert 'id="detector.detection.detect"' in reference
    assert 'id="pepscope.errors.PepscopeError"' in reference
    schemas = (site / "schemas.html").read_text(encoding="utf-8")
    for schema in (ROOT / "pepscope" / "schemas").glob("*.json"):
        assert f'id="{schema.stem}"' in schemas


def test_the_search_finds_pages_of_a_site_opened_as_files(site: Path, browser: Browser) -> None:
    page = Visit(browser, site / "guide" / "install.html").page
    page.click("input.md-search__input")
    page.keyboard.type("ERSPAN")
    found = page.wait_for_selector(".md-search-result__item a")
    assert found is not None
    assert found.get_attribute("href") == (site / "guide" / "captures.html").as_uri()
