"""Manifests of labelled corpora: what they say, and one sentence for each that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.corpora.validation.labels import Ends, GroupName, LabelError, end_point
from detector.corpora.validation.manifest import COLUMNS, as_factor, read_manifest
from detector.corpora.validation.validate import read_corpora
from pepscope.results.verdicts import GroupSide, SplitPlace, Verdict
from tests.detector.corpora.validation.labelled_corpora import EXAMPLE, manifest


def test_the_example_says_what_its_rows_say() -> None:
    haproxy, nat, behind_nat, behind_proxy = read_corpora([EXAMPLE])
    assert haproxy.name == "haproxy"
    assert [path.name for path in haproxy.captures] == ["server.pcap.gz", "mobile.pcap.gz"]
    (only,) = haproxy.cases
    assert only.truth is Verdict.SPLIT_TCP
    assert only.accepted == {Verdict.SPLIT_TCP}
    assert only.ends == (Ends("10.157.230.89:48252", "203.0.113.93:5001"),) * 2
    assert only.where is SplitPlace.NETWORK
    assert only.factors == {"access": "UMTS"}
    assert nat.cases[0].is_of_every_connection
    assert [len(run.cases) for run in (behind_nat, behind_proxy)] == [2, 2]
    first = behind_proxy.cases[0]
    assert first.group == GroupName("10.45.0.0/24", 80, None, GroupSide.SERVER)
    assert first.accepted == {Verdict.SPLIT_TCP, Verdict.TCP_PROXY}
    assert first.factors == {"access": "LTE", "hidden_leg_ms": 40.0}


def test_rows_of_the_same_captures_are_one_run_in_any_place(tmp_path: Path) -> None:
    path = manifest(
        tmp_path,
        "truth,capture_a,capture_b,client_a,server_a\n"
        "split-tcp,SPLIT_A,SPLIT_B,10.0.0.1:1,10.0.0.2:2\n"
        "regular,REGULAR_A,REGULAR_B,,\n"
        "\n# a comment, with a comma\n"
        "split-tcp,SPLIT_A,SPLIT_B,[2001:DB8::1]:1,[2001:db8:0::2]:2\n",
    )
    split, _ = read_manifest(path)
    assert [case.name for case in split.cases] == ["10.0.0.1:1 > 10.0.0.2:2", "[2001:db8::1]:1 > [2001:db8::2]:2"]


BAD = {
    "an unknown column": ("capture_a,truth,truht\nSPLIT_A,regular,x\n", r"begin with by_, got 'truht'$"),
    "no truth": ("capture_a,by_x\nSPLIT_A,1\n", "must have the columns capture_a and truth, truth is missing$"),
    "a column twice": ("capture_a,truth,truth\nSPLIT_A,regular,regular\n", "each column must be there once"),
    "a truth that is no class": (
        "capture_a,truth\nSPLIT_A,splitt\n",
        r"line 2: truth must be one of regular, split-tcp, tcp-proxy, got 'splitt'$",
    ),
    "an inconclusive truth": ("capture_a,truth\nSPLIT_A,inconclusive\n", "line 2: truth must be one of"),
    "an empty truth": ("capture_a,truth\nSPLIT_A,\n", "truth must be one of .*, got nothing$"),
    "a missing file": (
        "capture_a,truth\ngone.pcap,regular\n",
        "line 2: capture_a must be a file, got .*gone.pcap, which",
    ),
    "no row": ("capture_a,truth\n# nothing yet\n", "must have at least one row with a label, got none$"),
    "an empty file": ("", "must have the columns"),
    "a short row": ("capture_a,truth\nSPLIT_A\n", "line 2: a row must have 2 cells as the head has, got 1$"),
    "one end of a connection": ("capture_a,client_a,truth\nSPLIT_A,1.2.3.4:5,regular\n", "must be given together$"),
    "no address": (
        "capture_a,client_a,server_a,truth\nSPLIT_A,host:5,1.2.3.4:5,regular\n",
        "client_a must be address:port",
    ),
    "no port": (
        "capture_a,client_a,server_a,truth\nSPLIT_A,1.2.3.4,1.2.3.4:5,regular\n",
        "client_a must be address:port",
    ),
    "the second end of one capture": (
        "capture_a,client_b,server_b,truth\nSPLIT_A,1.2.3.4:4,1.2.3.4:5,regular\n",
        "must be empty where there is no capture_b$",
    ),
    "a connection and a group": (
        "capture_a,client_a,server_a,network,port,truth\nSPLIT_A,1.2.3.4:4,1.2.3.4:5,10.0.0.0/24,80,regular\n",
        "got both$",
    ),
    "a group without a port": (
        "capture_a,network,truth\nSPLIT_A,10.0.0.0/24,regular\n",
        "network and port must be given",
    ),
    "a network with host bits": (
        "capture_a,network,port,truth\nSPLIT_A,10.0.0.1/24,80,regular\n",
        "must be a network such as",
    ),
    "a great port": (
        "capture_a,network,port,truth\nSPLIT_A,10.0.0.0/24,65536,regular\n",
        "between 0 and 65535, got '65536'$",
    ),
    "both accepted": ("capture_a,truth,accepted\nSPLIT_A,regular,split-tcp\n", "accepted must be regular for regular"),
    "a place of nothing": ("capture_a,truth,where\nSPLIT_A,regular,network\n", "must be empty where nothing is split"),
    "an unknown place": (
        "capture_a,truth,where\nSPLIT_A,split-tcp,here\n",
        "where must be one of network, server, proxy, got 'here'$",
    ),
    "two names of a run": ("capture_a,run,truth\nSPLIT_A,one,regular\nSPLIT_A,two,regular\n", "run must be 'one'"),
    "two labels of everything": ("capture_a,truth\nSPLIT_A,regular\nSPLIT_A,split-tcp\n", "line 3: captures must have"),
    "a quote that does not end": ('capture_a,truth\n"SPLIT_A,regular\n', "must be CSV in UTF-8"),
}


@pytest.mark.parametrize(("text", "sentence"), BAD.values(), ids=BAD)
def test_what_cannot_be_used_is_one_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(LabelError, match=sentence) as raised:
        read_manifest(manifest(tmp_path, text))
    assert "\n" not in str(raised.value)


def test_a_manifest_that_is_no_text_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "manifest.csv"
    path.write_bytes(b"capture_a,truth\n\xff\xfe\n")
    with pytest.raises(LabelError, match="must be CSV in UTF-8"):
        read_manifest(path)


def test_directories_that_are_no_corpus_are_named(tmp_path: Path) -> None:
    with pytest.raises(LabelError, match=r"manifest.csv, truth.json or campaign.json; .* holds none of them$"):
        read_corpora([tmp_path])
    with pytest.raises(LabelError, match=r"does not exist$"):
        read_corpora([tmp_path / "gone"])


@given(st.lists(st.lists(st.text(max_size=12), max_size=len(COLUMNS)), max_size=4), st.booleans())
def test_any_text_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, cells: list[list[str]], head: bool
) -> None:
    lines = [",".join(COLUMNS)] if head else []
    path = tmp_path_factory.mktemp("corpus") / "manifest.csv"
    path.write_text("\n".join([*lines, *(",".join(row) for row in cells)]), encoding="utf-8", errors="replace")
    with pytest.raises(LabelError):
        read_manifest(path)


@given(st.ip_addresses(), st.integers(0, 65_535))
def test_an_end_point_has_one_form(address: object, port: int) -> None:
    text = f"[{address}]:{port}" if ":" in str(address) else f"{address}:{port}"
    assert end_point(text) == text
    assert end_point(f"{address}:{port}") == text


def test_numbers_are_finite() -> None:
    assert [as_factor(text) for text in ("1e3", "-2", "nan", "inf", "LTE")] == [1000.0, -2.0, "nan", "inf", "LTE"]
