"""The dashboard's pages with made-up runs: in a browser, by axe-core's rules, narrow, and with hostile names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from pepscope.results.audits import AuditRun
from pepscope.results.verdicts import Verdict
from prober.server.dashboard.stored_runs import StoredRun, StoredRuns, UnknownRunError, audit_of, run_from_document
from reports.audit.dashboard.frame import login_page, message_page
from reports.audit.dashboard.overview import overview_page
from reports.audit.dashboard.series import client_page, network_page
from tests.browser import Visit, browser
from tests.reports.audits_made_by_hand import CDMA_I, DOWN, make_audit, make_run

__all__ = ["browser"]

HOSTILE = '"><script>alert(1)</script>'


def stored(number: int, client: str, run: AuditRun | None, operator: str = "", **fields: object) -> StoredRun:
    if run is not None:
        run = replace(run, circumstances={"run": f"run-{number}", "notes": {"operator": operator} if operator else {}})
    values: dict[str, object] = {
        "client": client, "sha256": f"{number:064x}", "name": f"run-{number}.pepscope.zip", "size_bytes": 750_000,
        "number": number, "received_unix_s": 1_790_000_000 + number * 60, "uploaded_from": "192.0.2.0/24", "run": run,
    }  # fmt: skip
    return StoredRun(**{**values, **fields})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def runs() -> StoredRuns:
    changed = {**CDMA_I, ("http-data", DOWN): Verdict.REGULAR}
    return StoredRuns((
        stored(1, "alice", make_run(changed), "CDMA-I"),
        stored(2, "alice", make_run(CDMA_I, day=1), "CDMA-I"),
        stored(3, "bob", make_run(CDMA_I, day=2), "CDMA-I"),
        stored(4, "bob", make_run(changed, day=3), HOSTILE),
        stored(5, "bob", None),
        stored(6, "carol", None, fault=f"{HOSTILE} must be an archive of a run"),
    ))  # fmt: skip


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, runs: StoredRuns) -> dict[str, Path]:
    texts = {
        "refused": login_page("The key is wrong."),
        "empty": overview_page(StoredRuns(()), "boss"),
        "overview": overview_page(runs, "boss"),
        "network": network_page("CDMA-I", runs.networks()["CDMA-I"], "boss"),
        "hostile": network_page(HOSTILE, runs.networks()[HOSTILE], "boss"),
        "several": client_page("bob", runs, "boss"),
    }
    folder = tmp_path_factory.mktemp("pages")
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text)
    return {name: folder / f"{name}.html" for name in texts}


NAMES = ("refused", "empty", "overview", "network", "hostile", "several")


@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_nothing_and_nothing_is_cut_off(browser: Browser, pages: dict[str, Path], name: str) -> None:
    for scheme, width in (("light", 1280), ("dark", 390)):
        visit = Visit(browser, pages[name], color_scheme=scheme, viewport={"width": width, "height": 800})
        found = Axe().run(visit.page).response
        assert len(found["passes"]) > 12
        assert [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]] == []
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        assert visit.page.locator("script").count() == 0, "neither ours nor a client's"
        assert visit.complaints == []
        assert visit.requests == [pages[name].as_uri()]
        visit.page.context.close()


def test_the_overview_has_networks_changes_clients_and_archives(browser: Browser, pages: dict[str, Path]) -> None:
    page = Visit(browser, pages["overview"]).page
    assert page.locator("h1").inner_text() == "6 runs of 3 clients in 3 networks"
    assert "1 archive waits to be judged." in page.locator("main").inner_text()
    networks = page.get_by_role("group", name="networks and their latest verdicts")
    assert networks.locator("tbody th").all_inner_texts() == ["192.0.2.0/24", HOSTILE, "CDMA-I"]
    row = networks.locator("tbody tr", has_text="CDMA-I")
    assert row.locator("td").nth(0).inner_text() == "3"
    assert row.locator("a[aria-label]").evaluate_all("all => all.map(each => each.ariaLabel)") == [
        verdict.value for verdict in CDMA_I.values()
    ]
    (change,) = page.locator(".changes li").all_inner_texts()
    assert "CDMA-I, HTTP data, download is split-tcp, and was regular until" in change
    archives = page.get_by_role("group", name="latest archives").locator("tbody tr")
    assert archives.count() == 6
    assert HOSTILE in archives.first.inner_text()
    page.context.close()


def test_a_network_has_its_matrix_history_and_reasons(browser: Browser, pages: dict[str, Path]) -> None:
    page = Visit(browser, pages["network"]).page
    assert page.locator(".strip").first.locator("li").count() == 3, "the runs of two clients"
    links = page.locator("table.matrix a").evaluate_all("all => all.map(each => each.getAttribute('href'))")
    assert len(links) == len(CDMA_I)
    assert all(link.startswith(f"/runs/bob/{3:064x}#cell-") for link in links)
    assert page.locator(".cell h3").count() == len(CDMA_I)
    first = page.locator(".cell").first
    assert "split" in (first.get_attribute("class") or "") or "proxy" in (first.get_attribute("class") or "")
    page.context.close()


def test_other_pages_say_what_there_is(runs: StoredRuns) -> None:
    assert "carol: no archive could be judged so far" in client_page("carol", runs, "boss")
    assert "alice: a middlebox splits" in client_page("alice", runs, "boss")
    leading = message_page("being judged", "The page appears by itself.", "boss", next_page=f"/runs/{HOSTILE}")
    assert "<script" not in leading
    assert 'content="3;url=/runs/' in leading


def test_a_run_that_was_uploaded_twice_counts_once() -> None:
    run = make_run(CDMA_I)
    once = stored(1, "alice", run)
    again = replace(once, client="bob", number=2)
    assert len(audit_of([once, again]).runs) == 1
    assert audit_of([stored(3, "bob", None)]) is None


def test_what_json_says_of_a_run_is_read_back() -> None:
    result = make_audit()
    for document, run in zip(result.to_dict()["runs"], result.runs, strict=True):
        read = run_from_document(document, "run.pepscope.zip")
        assert [(c.application, c.direction, c.verdict, c.mechanism, c.reason) for c in read.cells] == [
            (c.application, c.direction, c.verdict, c.mechanism, c.reason) for c in run.cells
        ]
        assert read.started_unix_ns == run.started_unix_ns


@pytest.mark.parametrize(
    "change",
    [{"cells": 3}, {"cells": [{}]}, {"started_unix_ns": "x"}, {"circumstances": 1}, {"duration_s": None}],
)
def test_what_is_no_run_is_one_sentence(change: dict[str, object]) -> None:
    document = {**make_audit().to_dict()["runs"][0], **change}
    with pytest.raises(UnknownRunError, match=r"^a run must be of the contract audit-1, but a field is missing or wro"):
        run_from_document(document, "run")
