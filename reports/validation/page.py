"""The page of a validation: rates, confusion matrices, ROC, calibration, circumstances, time, and what went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pepscope
from detector.corpora.validation.scoring import RATES, SAYINGS
from pepscope.results.verdicts import Verdict
from pepscope.whole_file import write_output
from reports.document import STILL_CONTENT_POLICY, asset, fill, html_document
from reports.errors import cannot_write
from reports.figures.svg_chart import chart_svg
from reports.page_parts import counted
from reports.quantities import format_count, format_seconds
from reports.validation.charts import reliability_chart, roc_chart
from reports.validation.wording import (
    MEANINGS,
    SCORE_NAMES,
    change_text,
    factor_title,
    failure_lines,
    headline,
    percent,
    share_text,
    test_sentence,
    wrong,
)

if TYPE_CHECKING:
    from detector.corpora.validation.intervals import Share
    from detector.corpora.validation.results import Change, DetectorScore, Validation


#: Rows of what is not right; the JSON has all.
MOST_WRONG = 300
#: Circumstances that are open; a campaign varies many.
MOST_FACTORS = 12
#: Rates that circumstances are shown with.
_BY_FACTOR = ("false-alarm", "unconfirmed", "missed", "reversed")


def write_validation_page(validation: Validation, path: str | Path) -> None:
    """Write a validation as one self-contained HTML file to `path`. Raises ReportError."""
    text = validation_page_text(validation)
    try:
        write_output(path, text)
    except OSError as error:
        raise cannot_write(path, error) from error


def validation_page_text(validation: Validation) -> str:
    """The page as text; everything from outside is escaped."""
    scores = validation.detectors
    title = escape(" and ".join(Path(corpus).name or corpus for corpus in validation.corpora))
    body = fill(
        asset("validation.html"),
        {
            "title": title,
            "headline": escape(headline(validation)),
            "facts": "".join(_facts(validation)),
            "against": _against(validation),
            "rates": _rates(validation),
            "confusion": "".join(_confusion(score, alone=len(scores) == 1) for score in scores),
            "figures": "".join(
                f"<figure><h4>{escape(chart.title)}</h4>{chart_svg(chart)}<figcaption>{escape(chart.caption)}"
                "</figcaption></figure>"
                for chart in (roc_chart(scores), reliability_chart(scores))
            ),
            "calibration": "".join(_calibration(score, alone=len(scores) == 1) for score in scores),
            "factors": "".join(_factors(score, alone=len(scores) == 1, is_own=score is scores[0]) for score in scores),
            "timing": _timing(scores),
            "failures": "".join(f'<p class="limits">{escape(line)}.</p>' for line in failure_lines(validation)),
            "wrong": _wrong(validation),
            "version": escape(pepscope.__version__),
        },
    )
    return html_document(
        f"pepscope validation: {title}",
        body,
        styles=("page.css", "reproduction.css"),
        policy=STILL_CONTENT_POLICY,
    )


def _facts(validation: Validation) -> Iterator[str]:
    yield f"<li>labels <b>{format_count(len(validation.cases))}</b></li>"
    for truth in (Verdict.REGULAR, Verdict.SPLIT_TCP, Verdict.TCP_PROXY):
        count = sum(case.truth is truth for case in validation.cases)
        yield f"<li>{truth.value} <b>{format_count(count)}</b></li>"
    yield f"<li>runs <b>{format_count(len(validation.runs))}</b></li>"
    for score in validation.detectors:
        yield f"<li>detector <b>{escape(score.name)}</b></li>"


def _against(validation: Validation) -> str:
    comparison = validation.comparison
    if comparison is None:
        return ""
    return (
        '<section aria-labelledby="against-heading"><h2 id="against-heading">Against the baseline '
        f"{escape(comparison.baseline)}</h2>{_changes(comparison.changes, 'baseline', 'now')}"
        f'<p class="limits">{escape(test_sentence(comparison))}.</p></section>'
    )


def _changes(changes: Sequence[Change], before: str, now: str) -> str:
    rows = [
        (
            change.detector, MEANINGS[change.rate], share_text(change.before), share_text(change.now),
            change_text(change).partition(", ")[2], "worse" if change.is_worse else "",
        )
        for change in changes
    ]  # fmt: skip
    return _table(("detector", "failure", before, now, "test", ""), rows)


def _rates(validation: Validation) -> str:
    scores = validation.detectors
    rows = [
        (MEANINGS[rate.name], *(share_text(score.rates[rate.name]) for score in scores))
        for rate in RATES
        if scores[0].rates[rate.name].of
    ]
    table = _table(("failure", *(score.name for score in scores)), rows) + (
        '<p class="limits">Counts are of labels, with Wilson intervals of 95 %. Inconclusive is no error, but nothing '
        "found.</p>"
    )
    if not validation.beside:
        return table
    return (
        f"{table}<h3>Beside each other, on the same captures</h3>{_changes(validation.beside, 'pepscope', 'other')}"
        '<p class="limits">Exact McNemar test, one-sided, on the runs in which the other detector fails at more, or at '
        "fewer, labels.</p>"
    )


def _confusion(score: DetectorScore, *, alone: bool) -> str:
    rows = [
        (truth, *(row[said] for said in SAYINGS), sum(row.values()))
        for truth, row in score.confusion.items()
        if any(row.values())
    ]
    table = _table(("truth", *(each.replace("-judged", " judged") for each in SAYINGS), "all"), rows)
    connections, split = score.unlabelled
    rest = (
        f'<p class="limits">It also spoke of {counted(connections, "connection")} without a label, of which '
        f"{format_count(split)} {'is' if split == 1 else 'are'} called split.</p>"
        if connections
        else ""
    )
    return _titled(score, alone) + table + rest


def _calibration(score: DetectorScore, *, alone: bool) -> str:
    if not score.claims.said:
        return f'{_titled(score, alone)}<p class="limits">No probability was given.</p>'
    rows = [
        (
            f"{each.low:.0%} to {each.high:.0%}".replace("%", " %"), each.held.of, percent(each.mean_said),
            share_text(each.held),
        )
        for each in score.claims.bins()
    ]  # fmt: skip
    unknown = f"; {counted(score.roc.unknown, 'label')} without a probability" if score.roc.unknown else ""
    return (
        _titled(score, alone)
        + _table(("probability of a split", "labels", "mean", "split in truth"), rows)
        + f'<p class="limits">Brier score {score.claims.brier:.4f}: 0 is perfect, 0.25 a coin\'s{escape(unknown)}.</p>'
    )


def _factors(score: DetectorScore, *, alone: bool, is_own: bool) -> str:
    shown = [name for name in _BY_FACTOR if score.rates[name].of]
    head, parts = ("value", "labels", *(MEANINGS[name] for name in shown)), []
    for factor, rows in groupby(score.by_factor, key=lambda row: row.factor):
        cells = [(row.value, row.cases, *(_short(row.rates[name]) for name in shown)) for row in rows]
        parts.append(f"<h4>{escape(factor_title(factor))}</h4>{_table(head, cells)}")
    if len(parts) > MOST_FACTORS:
        rest = counted(len(parts) - MOST_FACTORS, "more circumstance")
        folded = f"<details><summary>{rest}</summary>{''.join(parts[MOST_FACTORS:])}</details>"
        parts = [*parts[:MOST_FACTORS], folded]
    tables = "".join(parts) or '<p class="limits">All labels have the same circumstances.</p>'
    if alone:
        return tables
    return f"<details{' open' if is_own else ''}><summary>{escape(score.name)}</summary>{tables}</details>"


def _short(share: Share) -> str:
    if share.value is None:
        return "–"
    return f"{format_count(share.count)} of {format_count(share.of)} (up to {percent(share.interval[1])})"


def _timing(scores: Sequence[DetectorScore]) -> str:
    rows = []
    for score in scores:
        timing = score.timing
        times = (timing.run_median_s, timing.run_p95_s, timing.connection_median_s, timing.connection_p95_s)
        rows.append(
            (score.name, format_seconds(timing.total_s), *("–" if t is None else format_seconds(t) for t in times))
        )
    head = ("detector", "in all", "a run, median", "95 of 100", "a connection, median", "95 of 100")
    return (
        _table(head, rows) + '<p class="limits">By a clock on the wall, in processes that share the machine; another '
        "detector's time includes its start.</p>"
    )


def _wrong(validation: Validation) -> str:
    found = [each for score in validation.detectors for each in wrong(validation, score)]
    if not found:
        return "<p>None.</p>"
    found.sort(key=lambda each: not each.judgement.score.is_error)
    rows = [
        (
            SCORE_NAMES[each.judgement.score], each.case.truth.value, each.judgement.said, each.detector, each.run,
            each.case.name, each.judgement.reason,
        )
        for each in found[:MOST_WRONG]
    ]  # fmt: skip
    limit = (
        f'<p class="limits">The first {MOST_WRONG} of {format_count(len(found))}; --json has all.</p>'
        if len(found) > MOST_WRONG
        else ""
    )
    return _table(("score", "truth", "said", "detector", "run", "label", "reason"), rows, wraps=True) + limit


def _titled(score: DetectorScore, alone: bool) -> str:
    return "" if alone else f"<h3>{escape(score.name)}</h3>"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]], *, wraps: bool = False) -> str:
    """A table; whole numbers stand at the right. Only where it wraps, its cells break."""
    made = list(rows)
    numeric = [bool(made) and all(isinstance(row[place], int) for row in made) for place in range(len(head))]
    looks = [' class="number"' if is_number else "" for is_number in numeric]
    titles = "".join(f'<th scope="col"{look}>{escape(name)}</th>' for name, look in zip(head, looks, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{look}>{_cell(cell)}</td>" for cell, look in zip(row, looks, strict=True)) + "</tr>"
        for row in made
    )
    style = ' class="wraps"' if wraps else ""
    return f'<div class="scroll"><table{style}><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(value: object) -> str:
    return format_count(value) if isinstance(value, int) else escape(str(value))
