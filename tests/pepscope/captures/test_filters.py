"""The filter language is libpcap's, compiled for each link type."""

from __future__ import annotations

import pytest

from pepscope.captures.opening.filters import LINK_TYPES, compile_filter
from pepscope.errors import FilterError

ETHERNET, RAW, IPV6 = 1, 101, 229


def test_every_link_type_gets_a_program() -> None:
    programs = compile_filter("tcp port 80")
    assert set(programs) == set(LINK_TYPES)
    assert all(program[-1][0] & 0x07 == 0x06 for program in programs.values()), "each ends in a return"


def test_link_type_without_the_field_is_left_out() -> None:
    programs = compile_filter("ether host 02:00:00:00:00:01")
    assert ETHERNET in programs
    assert RAW not in programs


def test_link_type_that_cannot_match_rejects() -> None:
    assert compile_filter("host 10.0.0.1")[IPV6] == [(0x06, 0, 0, 0)]


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("tcp prt 80", "syntax error"),
        ("port 99999", "99999"),
        ("tcp\0", "NUL"),
        ("\udcff", "does not compile"),
        ("host nosuch.invalid", "unknown host"),
    ],
)
def test_bad_expression_is_one_sentence(expression: str, complaint: str) -> None:
    with pytest.raises(FilterError, match=complaint) as caught:
        compile_filter(expression)
    assert "\n" not in str(caught.value)
