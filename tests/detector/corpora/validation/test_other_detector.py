"""Detectors of others: what they answer is scored, and whatever they do instead is their failure, in one sentence."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.corpora.validation import other_detector
from detector.corpora.validation.answers import AnswerError, decode_answer
from detector.corpora.validation.labels import Case, Ends, GroupName
from detector.corpora.validation.other_detector import OtherDetector, ask
from detector.corpora.validation.validate import validate
from pepscope.errors import UsageError
from pepscope.results.verdicts import SplitPlace, Verdict
from tests.detector.corpora.validation.labelled_corpora import EXAMPLE, SPLIT_ENDS

CAPTURES = ("/a.pcap", "/b.pcap")


def program(directory: Path, text: str, timeout_s: float = 60.0) -> OtherDetector:
    path = directory / "detector.py"
    path.write_text(text, encoding="utf-8")
    return OtherDetector.from_command(shlex.join([sys.executable, str(path)]), timeout_s)


def answer(*pairs: dict[str, object]) -> bytes:
    return json.dumps({"schema": 1, "pairs": pairs}).encode()


def pair(verdict: str, *ends: tuple[str, str, str], **more: object) -> dict[str, object]:
    vantages = [{"capture": capture, "client": client, "server": server} for capture, client, server in ends]
    return {"vantages": vantages, "verdict": verdict, **more}


def label(a: tuple[str, str] | None, b: tuple[str, str] | None) -> Case:
    ends = (None if a is None else Ends(*a), None if b is None else Ends(*b))
    return Case(Verdict.REGULAR, frozenset({Verdict.REGULAR}), ends)


A, OTHER_A = ("10.0.0.1:1", "10.0.0.2:2"), ("10.0.0.1:7", "10.0.0.2:2")
B, OTHER_B = ("10.9.0.1:1", "10.0.0.2:2"), ("10.9.0.1:7", "10.0.0.2:2")


def test_a_connection_is_found_by_both_ends_whoever_is_the_client() -> None:
    said = decode_answer(
        answer(
            pair("split-tcp", ("/a.pcap", *A), ("/b.pcap", *OTHER_B)),
            pair("regular", ("/b.pcap", *B), ("/a.pcap", A[1], A[0]), probability={"regular": 0.75}),
        ),
        CAPTURES,
    )
    found = said.of(label(A, B))
    assert found is not None
    assert (found.verdict, found.split_probability) == (Verdict.REGULAR, 0.25)
    assert [each.verdict for each in said.unlabelled] == [Verdict.SPLIT_TCP]


def test_of_two_groups_of_a_port_a_label_of_a_proxy_means_the_one_that_asks_for_it() -> None:
    group = {"network": "10.0.0.0/24", "port": 8888, "side": "client", "by_host": []}
    groups = [{**group, "verdict": "regular"}, {**group, "verdict": "split-tcp", "where": "proxy"}]
    plain = Case(Verdict.REGULAR, frozenset({Verdict.REGULAR}), (None, None), GroupName("10.0.0.0/24", 8888))
    proxy = replace(plain, truth=Verdict.SPLIT_TCP, where=SplitPlace.PROXY)
    for order in (groups, groups[::-1]):
        said = decode_answer(json.dumps({"schema": 2, "pairs": [], "groups": order}).encode(), CAPTURES)
        verdicts = [None if (found := said.of(each)) is None else found.verdict for each in (plain, proxy)]
        assert verdicts == [Verdict.REGULAR, Verdict.SPLIT_TCP]
        alone = decode_answer(json.dumps({"schema": 2, "pairs": [], "groups": order[:1]}).encode(), CAPTURES)
        assert None not in (alone.of(plain), alone.of(proxy)), "whichever there is"


def test_a_connection_paired_with_another_is_scored_by_what_is_said_of_it() -> None:
    said = decode_answer(answer(pair("split-tcp", ("/a.pcap", *A), ("/b.pcap", *OTHER_B))), CAPTURES)
    found = said.of(label(A, B))
    assert found is not None
    assert found.verdict is Verdict.SPLIT_TCP
    assert said.of(label(OTHER_A, OTHER_B)) is None, "each statement is given once"


def test_connections_with_the_same_ends_come_in_order() -> None:
    said = decode_answer(answer(pair("regular", ("/a.pcap", *A)), pair("split-tcp", ("/a.pcap", *A))), CAPTURES)
    verdicts = [said.of(label(A, None)) for _ in range(3)]
    assert [None if each is None else each.verdict.value for each in verdicts] == ["regular", "split-tcp", None]


BAD = {
    "no JSON": (b"regular", "its output must be JSON"),
    "half of it": (b'{"schema": 1, "pairs": [', "its output must be JSON"),
    "no text": (b'{"schema": 1, "pairs": "\xff"}', "its output must be JSON"),
    "nothing": (b"", "its output must be JSON"),
    "a list": (b"[]", "the document must be"),
    "another version": (b'{"schema": 3, "pairs": []}', "schema must be one of 1, 2, got 3"),
    "no pairs": (b'{"schema": 1}', "pairs is missing"),
    "an unknown verdict": (answer(pair("maybe", ("/a.pcap", *A))), r"pairs\[0\].verdict must be one of"),
    "a probability of more": (
        answer(pair("regular", ("/a.pcap", *A), probability={"regular": 1.5})), r"regular must be .* 1, got 1.5",
    ),
    "no vantage": (answer(pair("regular")), r"pairs\[0\].vantages must be"),
    "another capture": (answer(pair("regular", ("/c.pcap", *A))), "a capture that it was not given, '/c.pcap'"),
    "no port": (answer(pair("regular", ("/a.pcap", "10.0.0.1", "10.0.0.2:2"))), "must be address:port, got '10.0.0.1'"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), BAD.values(), ids=BAD)
def test_what_is_no_answer_is_one_sentence(text: bytes, sentence: str) -> None:
    with pytest.raises(AnswerError, match=sentence) as raised:
        decode_answer(text, CAPTURES)
    assert "\n" not in str(raised.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.sampled_from([1, "regular", "/a.pcap", *A]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["schema", "pairs", "groups", "vantages", "verdict", "probability", "capture", "client", "server"]
            ),
            inner,
            max_size=9,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_document_is_an_answer_or_refused(document: object) -> None:
    try:
        said = decode_answer(json.dumps(document).encode(), CAPTURES)
    except AnswerError:
        return
    assert len(said.unlabelled) == said.connections


def test_a_crash_is_told_with_its_last_line(tmp_path: Path) -> None:
    with pytest.raises(AnswerError, match=r"^it ended with status 3: the last line$"):
        ask(program(tmp_path, "import sys\nprint('first\\nthe last line', file=sys.stderr)\nsys.exit(3)"), CAPTURES)
    with pytest.raises(AnswerError, match=r"^it was ended by SIGSEGV$"):
        ask(program(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)"), CAPTURES)


def test_what_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    text = (
        "import pathlib, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"pathlib.Path({str(tmp_path / 'child')!r}).write_text(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    # Long enough that both have started on a busy machine.
    with pytest.raises(AnswerError, match=r"^it took longer than 5 s$"):
        ask(program(tmp_path, text, timeout_s=5.0), CAPTURES)
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 60
    while _runs(child):
        assert time.monotonic() < deadline, "its child still runs"
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_detector_outlives_the_command(number: signal.Signals, tmp_path: Path) -> None:
    text = f"import os, pathlib, time\npathlib.Path({str(tmp_path)!r}, str(os.getpid())).touch()\ntime.sleep(600)\n"
    command = shlex.join(program(tmp_path, text).words)
    started = subprocess.Popen(
        [sys.executable, "-m", "pepscope", "validate", EXAMPLE, "--detector", command, "--jobs", "2"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0,
    )  # fmt: skip
    deadline = time.monotonic() + 300
    while len(running := [int(path.name) for path in tmp_path.iterdir() if path.name.isdecimal()]) < 2:
        assert time.monotonic() < deadline, "the detectors did not start"
        time.sleep(0.05)
    # A terminal interrupts the whole group, anything else the command alone.
    os.killpg(started.pid, number) if number is signal.SIGINT else started.send_signal(number)
    assert started.wait(300) != 0
    while any(map(_runs, running)):
        assert time.monotonic() < deadline + 300, "a detector still runs"
        time.sleep(0.05)


def _runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_endless_output_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_detector, "MOST_OUTPUT_BYTES", 1 << 20)
    with pytest.raises(AnswerError, match=r"^it wrote more than 1 MiB$"):
        ask(program(tmp_path, "while True: print('x' * 4096)"), CAPTURES)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("/no/such/detector --json", "a program that can be run, got '/no/such/detector'$"),
        ("detector-that-nobody-has", "a program that can be run"),
        ("", "must be a command, got nothing$"),
        ("python 'unfinished", "must be a command, got .*: No closing quotation$"),
    ],
)
def test_a_command_that_does_not_exist_is_one_sentence(command: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        OtherDetector.from_command(command, 1.0)


def test_ours_as_a_command_scores_as_ours() -> None:
    command = shlex.join([sys.executable, "-m", "pepscope", "detect", "--json"])
    ours, theirs = validate([EXAMPLE], detector=command, processes=2).detectors
    assert len(ours.judgements) == 6
    assert theirs.judgements == ours.judgements
    assert theirs.failures() == {}


def test_failures_count_as_not_found(tmp_path: Path) -> None:
    text = (
        "import json, sys\n"
        "if len(sys.argv) == 2: sys.exit('one capture is not enough')\n"
        f"ends = {{'client': {SPLIT_ENDS.client!r}, 'server': {SPLIT_ENDS.server!r}}}\n"
        "pair = {'vantages': [{'capture': path, **ends} for path in sys.argv[1:]], 'verdict': 'regular'}\n"
        "json.dump({'schema': 1, 'pairs': [pair]}, sys.stdout)\n"
    )
    command = shlex.join(program(tmp_path, text).words)
    result = validate([os.path.relpath(EXAMPLE)], detector=command, processes=2)
    _, other = result.detectors
    scores = [(judged.said, judged.score.value) for judged in other.judgements]
    assert scores == [("regular", "reversed"), ("not-judged", "not-found"), *[("failed", "not-found")] * 4]
    assert other.failures() == {"it ended with status 1: one capture is not enough": 2}
    assert other.unlabelled == (1, 0)
    assert other.roc.unknown == 6
    assert {change.rate: (change.worse, change.better) for change in result.beside}["reversed"] == (1, 0)
