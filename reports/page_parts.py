"""The parts of a page that show a verdict: its name, its probabilities, and its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from types import MappingProxyType

from pepscope.results.verdicts import Evidence, Verdict
from reports.glossary import with_tooltips
from reports.packets import packets_table
from reports.quantities import describe_number, format_count, format_percent
from reports.wording import VERDICT_NAMES, method_name

_OUTCOME_NAMES = {"split": "split", "intact": "end to end", "inapplicable": "not applicable"}


def counted(count: int, noun: str) -> str:
    """A number with its noun, in the plural where it is not one."""
    return f"{format_count(count)} {noun}{'' if count == 1 else 's'}"


def verdict_badge(kind: Verdict) -> str:
    """The verdict as a coloured word."""
    return f'<span class="badge {kind.value}">{escape(VERDICT_NAMES[kind])}</span>'


def probability_bar(probability: Mapping[Verdict, float]) -> str:
    """The three probabilities as a bar with its legend."""
    kinds = (Verdict.REGULAR, Verdict.SPLIT_TCP, Verdict.TCP_PROXY)
    shares = {kind: float(probability.get(kind, 0.0)) for kind in kinds}
    bars = "".join(f'<i class="{kind.value}" style="flex-grow:{share:.4f}"></i>' for kind, share in shares.items())
    legend = "".join(
        f'<li class="{kind.value}">{escape(VERDICT_NAMES[kind])} <b>{format_percent(share)}</b></li>'
        for kind, share in shares.items()
    )
    return f'<div class="probability"><div class="bar" aria-hidden="true">{bars}</div><ul>{legend}</ul></div>'


def evidence_table(evidence: Sequence[Evidence], titles: Mapping[str, str] = MappingProxyType({})) -> str:
    """The evidence of each method or experiment, the strongest first; `titles` are those of experiments."""
    if not evidence:
        return '<p class="limits">No method found evidence.</p>'
    ordered = sorted(evidence, key=lambda item: (item.outcome.value == "inapplicable", -item.strength))
    rows = "".join(_evidence_row(item, titles) for item in ordered)
    return (
        '<h3>Evidence</h3><table class="evidence"><thead><tr><th scope="col">Method</th><th scope="col">Result</th>'
        f'<th scope="col">Strength</th><th scope="col">Finding</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def strength_bar(item: Evidence) -> str:
    """The strength of the evidence as a bar."""
    percent = max(0.0, min(1.0, item.strength)) * 100
    return (
        f'<span class="strength" role="img" aria-label="strength {percent:.0f} of 100">'
        f'<i style="width:{percent:.0f}%"></i></span>'
    )


def _evidence_row(item: Evidence, titles: Mapping[str, str]) -> str:
    outcome = item.outcome.value
    numbers = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>"
        for label, value in (describe_number(name, value) for name, value in item.numbers.items())
    )
    caveats = "".join(f"<li>{escape(text)}</li>" for text in item.caveats)
    return (
        f'<tr class="{outcome}"><th scope="row">{escape(method_name(item.method, titles))}</th>'
        f'<td data-label="result"><span class="outcome {outcome}">{_OUTCOME_NAMES[outcome]}</span></td>'
        f'<td data-label="strength">{strength_bar(item)}</td>'
        f'<td class="finding">{with_tooltips(item.summary)}'
        + (f'<ul class="caveats" aria-label="what could mislead">{caveats}</ul>' if caveats else "")
        + (f"<details><summary>numbers</summary><dl>{numbers}</dl></details>" if numbers else "")
        + packets_table(item.packets)
        + "</td></tr>"
    )
