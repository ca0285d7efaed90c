"""Targets as users write them, and what the check imports."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pepscope.errors import PepscopeError, UsageError
from prober.check.questions import http_field, http_status, question
from prober.check.targets import Target, public_targets, read_ports, read_targets


def test_targets_are_lines():
    lines = ["# mine", "example.org 80", "", "example.org 8080 tls  # odd", "2001:db8::5 443", "example.org 443 plain"]
    assert read_targets(lines, "x") == (
        Target("example.org", 80, False),
        Target("example.org", 8080, True),
        Target("2001:db8::5", 443, True),
        Target("example.org", 443, False),
    )


@pytest.mark.parametrize(
    "line", ["example.org", "example.org x", "example.org 0", "example.org 65536", "a 80 udp", "a 80 tls tls", "a ٣"]
)
def test_other_lines_are_refused_in_one_sentence(line):
    with pytest.raises(UsageError, match=r"^x, line 2, must be HOST PORT \[tls\|plain\], got"):
        read_targets(["a 1", line], "x")


@given(st.lists(st.text(max_size=40)))
def test_any_text_gives_targets_or_an_error_of_ours(lines):
    try:
        found = read_targets(lines, "x")
    except PepscopeError:
        found = ()
    assert all(1 <= each.port <= 65_535 and each.host for each in found)


def test_ports_are_read_once_each_and_nonsense_is_refused():
    assert read_ports("80, 443,80") == (80, 443)
    for text in ("", "80,", "0", "x", "70000"):
        with pytest.raises(UsageError):
            read_ports(text)
    assert {each.port for each in public_targets((80, 993))} == {80, 993}
    assert {each.tls for each in public_targets((993,))} == {True}


def test_questions_are_those_of_ordinary_clients():
    assert question(Target("example.org", 80, False)).startswith(b"HEAD / HTTP/1.1\r\nHost: example.org\r\n")
    for host in ("example.org", "192.0.2.7", "2001:db8::7"):
        hello = question(Target(host, 443, True))
        assert hello[0] == 22, "a handshake record"
        assert hello[5] == 1, "a client hello"
        assert (host.encode() in hello) == (host == "example.org")


@given(st.binary(max_size=200))
def test_heads_of_any_bytes(data):
    status = http_status(data)
    assert status is None or status >= 0
    assert isinstance(http_field(data, "Location"), str)


def test_the_check_needs_the_standard_library_alone():
    program = (
        "import sys\nbefore = set(sys.modules)\nimport prober.check.__main__\n"
        "names = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(names - set(sys.stdlib_module_names) - {'pepscope', 'prober'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout == "[]\n"
