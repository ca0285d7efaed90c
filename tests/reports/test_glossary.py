"""Every term is one sentence with a source, and prose shows it as a tooltip once."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.glossary import glossary, with_tooltips


class _Text(HTMLParser):
    """Collects text outside of tags, and the tooltips."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.titles: list[str] = []

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag == "abbr"
        assert ("tabindex", "0") in attrs
        self.titles += [value or "" for name, value in attrs if name == "title"]


def read(html: str) -> _Text:
    """What a browser shows of `html`."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    return parser


@pytest.mark.parametrize("name", glossary())
def test_a_term_is_one_sentence_with_a_source(name: str) -> None:
    term = glossary()[name]
    assert term.meaning.endswith(".")
    assert not re.search(r"[.!?] [A-Z]", term.meaning)
    assert term.source


def test_terms_stand_in_alphabetical_order() -> None:
    assert list(glossary()) == sorted(glossary(), key=str.lower)
    assert len(glossary()) >= 60


def test_the_first_occurrence_shows_the_meaning() -> None:
    shown = read(with_tooltips("The receive window shut; receive windows open again. Split-TCP & a cache."))
    assert shown.text == "The receive window shut; receive windows open again. Split-TCP & a cache."
    assert len(shown.titles) == 3
    assert shown.titles[0].startswith(glossary()["receive window"].meaning)


def test_a_term_inside_another_word_is_none() -> None:
    assert with_tooltips("relayed cacheable sub-step natural") == "relayed cacheable sub-step natural"


@given(st.lists(st.sampled_from([*glossary(), "<b>", "&", '"', "' x", "plain words"])).map(" ".join))
def test_tooltips_change_no_text(prose: str) -> None:
    shown = read(with_tooltips(prose))
    assert shown.text == prose
    assert len(shown.titles) == len(set(shown.titles))
