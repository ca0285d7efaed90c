"""Terms of the field in one sentence each, for tooltips on pages and for docs/glossary.md."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Term:
    """A term's meaning in one sentence, and the RFC, specification or paper that the sentence follows."""

    meaning: str
    source: str


@cache
def glossary() -> dict[str, Term]:
    """Every term, in alphabetical order."""
    text = files("reports").joinpath("assets", "glossary.toml").read_text(encoding="utf-8")
    return {name: Term(**entry) for name, entry in tomllib.loads(text).items()}


def with_tooltips(prose: str) -> str:
    """HTML of `prose`, where the first occurrence of each term of the glossary shows its meaning as a tooltip.

    The pointer shows it beside the term, the keyboard (and a touch) at the foot of the window.
    """
    shown: set[str] = set()

    def explain(match: re.Match[str]) -> str:
        term = _terms_by_lower_case()[match["term"].lower()]
        if term in shown:
            return match[0]
        shown.add(term)
        entry = glossary()[term]
        meaning = escape(f"{entry.meaning} ({entry.source})")
        return f'<abbr tabindex="0" title="{meaning}">{match[0]}</abbr>'

    return _pattern().sub(explain, escape(prose))


@cache
def _terms_by_lower_case() -> dict[str, str]:
    return {escape(term).lower(): term for term in glossary()}


@cache
def _pattern() -> re.Pattern[str]:
    # The longest term first, so that a term inside another one does not hide it.
    terms = sorted((escape(term) for term in glossary()), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?P<term>{'|'.join(map(re.escape, terms))})s?(?![\w-])", re.IGNORECASE)
