"""The site of an audit: its files, its figures beside SQL, and what it refuses."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from html import unescape
from pathlib import Path

import pytest
from click.testing import CliRunner

from detector.commands.corpora import audit_captures as audit_command
from detector.commands.detect import detect as detect_command
from detector.commands.site import site as command
from detector.corpora.audit import audit_captures
from detector.corpora.query import query
from detector.corpora.tables import IDENTITY_FILE
from pepscope.errors import PepscopeError, UsageError
from reports.corpora import site_directory
from reports.corpora.network_pages import LISTED_TOGETHER
from reports.corpora.parts import network_page
from reports.corpora.questions import MAX_LISTED
from reports.corpora.site import write_site
from reports.corpora.site_directory import MARKER
from reports.errors import ReportError
from tests.captures.containers import read_capture, write_pcap
from tests.detector.corpus import CORPUS
from tests.detector.one_capture.real_networks import named
from tests.reports.corpora.tables_made_by_hand import connection, many_connections, write_tables

SPLIT = named("lte-relay.server").path
PAIR = tuple(CORPUS / f"spl_ha_dl_srcip.{end}.pcap.gz" for end in ("srv", "mob"))

LINK = re.compile(r'(?:href|src)="([^"]*)"')


def files(site: Path) -> dict[str, bytes]:
    return {str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*") if path.is_file()}


def text_of(page: Path) -> str:
    return unescape(re.sub(r"<[^>]*>", " ", page.read_text(encoding="utf-8")))


def broken_links(site: Path) -> list[tuple[str, str]]:
    """Links of all pages that lead nowhere, or out of the site."""
    pages = list(site.rglob("*.html"))
    assert pages
    found = []
    for page in pages:
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            address = unescape(link)
            if address.startswith(("data:", "#")):
                continue
            target = (page.parent / address.partition("#")[0]).resolve()
            if not target.is_file() or not target.is_relative_to(site.resolve()):
                found.append((page.name, address))
    return found


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures")
    for path in (SPLIT, *PAIR):
        shutil.copy(path, folder)
    other = read_capture(named("umts-nat.server").path)
    (folder / "ring").mkdir()
    middle = len(other.frames) // 2
    for number, part in enumerate((other.frames[:middle], other.frames[middle:])):
        (folder / "ring" / f"ring.pcap{number or ''}").write_bytes(write_pcap(part, other.link_type))
    audit_captures([str(folder)], folder / "result", processes=1)
    return folder / "result"


def test_every_link_leads_somewhere_and_pages_of_connections_show_them(audited: Path, tmp_path: Path) -> None:
    summary = write_site(audited, tmp_path / "site", pages=6)
    assert broken_links(tmp_path / "site") == []
    assert (summary.connection_pages, summary.not_made) == (6, ())
    total, networks = query(audited, "SELECT count(*), count(DISTINCT client_network) FROM connections").rows[0]
    assert (summary.connections, summary.networks) == (total, networks)
    pages = sorted((tmp_path / "site" / "connections").glob("*.html"))
    assert len(pages) == 6
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert 'data-address="../assets/plotly.min.js"' in text
        assert text.count('<details class="connection" id="connection-') == 1
        assert len(text) < 1_000_000
        assert "/tmp/pepscope-" not in text


def test_shares_of_the_overview_are_those_of_the_tables(tmp_path: Path) -> None:
    rows = [connection(number, verdict="split-tcp" if number < 30 else "regular", port=443) for number in range(120)]
    rows += [connection(200 + number, verdict="inconclusive", port=80) for number in range(7)]
    write_site(write_tables(tmp_path / "tables", rows), tmp_path / "site")
    text = " ".join(text_of(tmp_path / "site" / "index.html").split())
    assert "25 % of the decided connections in 1 network are split (18–34 %)" in text
    assert "25 % 18–34 % 30 of 120" in text
    assert "none of 7 decided" in text
    assert "there is nothing to compare it with" in text


@pytest.mark.parametrize(("where", "remark"), [("server", "at the server's site"), ("proxy", "the client asks for")])
def test_the_network_is_not_charged_with_splits_at_an_end(tmp_path: Path, where: str, remark: str) -> None:
    rows = [
        connection(number, verdict="split-tcp" if number < 30 else "regular", week=number % 2, group_where=place)
        for number in range(120)
        for place in [where if number < 20 else None]
    ]
    write_site(write_tables(tmp_path / "tables", rows), tmp_path / "site")
    text = " ".join(text_of(tmp_path / "site" / "index.html").split())
    assert "10 % of the decided connections in 1 network are split" in text
    assert "20 connections are split at an end, not by the network" in text
    assert "10 of 100, 20 split at an end" in text
    assert "10 of 110" not in text
    assert remark in text_of(tmp_path / "site" / network_page("192.0.2.0/24"))


def test_changes_disagreements_and_hidden_legs_are_shown(tmp_path: Path) -> None:
    rows = [connection(number, week=number % 2, network="Old") for number in range(100)]
    rows += [connection(number, week=0, network="Turned") for number in range(40)]
    rows += [
        connection(
            number, week=1, network="Turned", verdict="split-tcp", group_hidden_round_trip_s=0.0625,
            methods_split="ack_timing", methods_intact="identity", group_verdict="regular",
        )
        for number in range(40)
    ]  # fmt: skip
    both = connection(7, week=1, network="Old", unit="1" * 24, verdict="split-tcp")
    write_site(write_tables(tmp_path / "tables", [*rows, both], [("x.pcap", "x.pcap is empty")]), tmp_path / "site")
    page = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    sections = dict(re.findall(r'<h2 id="([\w-]+)">(.*?)</section>', page, re.DOTALL))
    changed = sections["what-changed"]
    assert changed.count(f'<a href="{network_page("Turned")}">Turned</a>') == 2
    assert "points</td>" in changed
    assert "62.5 ms" in sections["slowest-hidden-legs"]
    disagree = sections["where-judgements-disagree"]
    for heading in ("Methods among each other", "Connections and their groups", "Vantage points about one connection"):
        assert heading in disagree
    assert "x.pcap is empty" in sections["what-could-not-be-judged"]
    network = text_of(tmp_path / "site" / network_page("Turned"))
    assert "Split, say" in network


def test_the_command_of_a_row_makes_its_page(audited: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    write_site(audited, site)
    assert not (site / "connections").exists()
    assert not (site / "assets" / "plotly.min.js").exists()
    pages = {path.name: path.read_text(encoding="utf-8") for path in (site / "networks").glob("*.html")}
    commands = [
        unescape(each) for text in pages.values() for each in re.findall(r"<code>(pepscope detect .*?)</code>", text)
    ]
    one = next(each for each in commands if "lte-relay" in each)
    two = next(each for each in commands if PAIR[0].name in each)
    ring = next(each for each in commands if "ring" in each)
    assert "--one-vantage" in ring
    (site / "connections").mkdir()
    for line in (one, two, ring):
        words = shlex.split(line)
        done = CliRunner().invoke(detect_command, words[2:])
        assert done.exit_code == 0, done.output
        page = Path(words[words.index("--html") + 1])
        assert page.read_text(encoding="utf-8").count('<details class="connection" id="connection-') >= 1
    write_site(audited, site)
    assert broken_links(site) == []
    linked = {link for page in (site / "networks").glob("*.html") for link in LINK.findall(page.read_text())}
    assert {f"../connections/{path.name}" for path in (site / "connections").iterdir()} <= linked


def test_a_site_is_the_same_each_time_and_keeps_what_it_did_not_write(audited: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    write_site(audited, site, pages=2)
    first = files(site)
    (site / "connections" / "mine.html").write_text("mine")
    (site / "notes.txt").write_text("mine")
    write_site(audited, site, pages=2)
    assert files(site) == {**first, "notes.txt": b"mine", "connections/mine.html": b"mine"}
    write_site(write_tables(tmp_path / "small", [connection()]), site)
    left = files(site)
    assert {"notes.txt", "connections/mine.html", network_page("192.0.2.0/24")} <= set(left)
    assert {name for name in left if name.startswith("networks/")} == {network_page("192.0.2.0/24")}
    assert "assets/plotly.min.js" not in left
    assert broken_links(site) == []


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    hostile = "</script><img src=x onerror=alert(1)>../../{{content}}'\"& DROP TABLE"
    rows = [
        connection(1, client_network=hostile, reason=hostile, mechanism=hostile, verdict="split-tcp", client_a=hostile)
    ]
    tables = write_tables(tmp_path / "tables", rows, [(hostile, hostile)])
    write_site(tables, tmp_path / "site")
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) == 2
    for page in pages:
        assert "<img" not in page.read_text(encoding="utf-8")
        assert "{{content}}" in page.read_text(encoding="utf-8")
    assert broken_links(tmp_path / "site") == []


def test_many_connections_make_light_pages(tmp_path: Path) -> None:
    count = 60_000
    tables = write_tables(tmp_path / "tables", many_connections(count // 30), copies=30)
    summary = write_site(tables, tmp_path / "site")
    assert (summary.connections, summary.networks) == (count, 151)
    sizes = {name: len(content) for name, content in files(tmp_path / "site").items()}
    assert max(sizes.values()) < 300_000, max(sizes.items(), key=lambda item: item[1])
    large = network_page("192.0.2.0/24")
    assert sum(name.startswith(large.removesuffix(".html")) for name in sizes) == -(-3 * MAX_LISTED // LISTED_TOGETHER)
    text = text_of(tmp_path / "site" / large)
    assert "1,500 of 30,000" in text
    sql = shlex.split(re.search(r"pepscope query .*?started'?", text)[0])[-1]  # type: ignore[index]
    assert query(tables, f"SELECT count(*) FROM ({sql})").rows == [(30_000,)]
    assert broken_links(tmp_path / "site") == []


def test_mistakes_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = write_tables(tmp_path / "good", [connection()])
    empty = write_tables(tmp_path / "empty", [])
    other = write_tables(tmp_path / "other", [connection()])
    (other / IDENTITY_FILE).write_text(json.dumps({"form": 1, "version": "0.0.1"}))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    (tmp_path / "older").mkdir()
    (tmp_path / "older" / MARKER).write_text('{"pepscope-site": 0}\n')
    (tmp_path / "nothing").mkdir()
    for tables, target, says in (
        (other, "out", "pepscope 0.0.1"),
        (empty, "out", "no connection"),
        (tmp_path / "nothing", "out", "no tables"),
        (good, "full", "got one with other files"),
        (good, "older", "site of another version"),
        (good, "full/mine.txt", "other files"),
        (good, "full/mine.txt/deep", "cannot be written: Not a directory"),
    ):
        with pytest.raises(PepscopeError, match=says) as raised:
            write_site(tables, tmp_path / target)
        assert "\n" not in str(raised.value)
    assert not (tmp_path / "out").exists()
    assert files(tmp_path / "full") == {"mine.txt": b"mine"}

    def no_space(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    write_site(good, tmp_path / "site")
    before = files(tmp_path / "site")
    monkeypatch.setattr(site_directory, "write_whole", no_space)
    with pytest.raises(ReportError, match=r"site cannot be written: No space left on device\.$"):
        write_site(good, tmp_path / "site")
    monkeypatch.undo()
    assert {name: text for name, text in files(tmp_path / "site").items() if name != MARKER} == {
        name: text for name, text in before.items() if name != MARKER
    }


def test_a_marker_that_names_other_files_deletes_none(tmp_path: Path) -> None:
    good = write_tables(tmp_path / "good", [connection()])
    write_site(good, tmp_path / "site")
    mine = tmp_path / "mine.html"
    mine.write_text("mine")
    with (tmp_path / "site" / MARKER).open("a") as stream:
        stream.write(json.dumps("../mine.html") + "\n" + json.dumps(str(mine)) + "\n" + '"cut')
    write_site(good, tmp_path / "site")
    assert mine.read_text() == "mine"


def test_captures_that_are_gone_are_said_and_stop_nothing(tmp_path: Path) -> None:
    tables = write_tables(tmp_path / "tables", [connection(number) for number in range(4)])
    said = CliRunner().invoke(command, [str(tables), "-o", str(tmp_path / "site"), "--json"])
    assert said.exit_code == 0, said.output
    document = json.loads(said.stdout)
    assert (document["schema"], document["connection_pages"]) == (1, 0)
    assert said.stderr == "pepscope: no page: a.pcap is no file here, so that its connections cannot be judged again\n"
    text = text_of(tmp_path / "site" / network_page("192.0.2.0/24"))
    assert "a.pcap is no file here: copy it to a disk" in text


def test_an_audit_writes_its_site_at_once(tmp_path: Path) -> None:
    runner, result, site = CliRunner(), str(tmp_path / "out"), str(tmp_path / "site")
    arguments = [str(SPLIT), "-o", result, "--jobs", "1"]
    said = runner.invoke(audit_command, [*arguments, "--site", site, "--pages", "1", "--json"])
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["captures"] == 1
    assert f"wrote {site}/index.html" in said.stderr
    assert len(list(Path(site).glob("connections/*.html"))) == 1
    with pytest.raises(UsageError, match="--site"):
        runner.invoke(audit_command, [*arguments, "--pages", "1"], catch_exceptions=False)
