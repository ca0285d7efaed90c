"""The command `validate`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from pepscope.command_line.options import Duration, Number, OptionType, least_probability_option, memory_option
from pepscope.command_line.reports import ReportingCommand, report_option
from pepscope.command_line.volume import announce
from pepscope.errors import UsageError
from pepscope.whole_file import STANDARD_OUTPUT, write_output

if TYPE_CHECKING:
    from detector.corpora.validation.results import Validation


class Scores(OptionType[frozenset[str]]):
    """A comma-separated list of scores."""

    name = "scores"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[str]:
        """Scores as they stand in results."""
        from detector.corpora.validation.scoring import Score

        if isinstance(value, frozenset):
            return value
        words = [word.strip() for word in str(value).split(",")]
        allowed = [score.value for score in Score if score is not Score.RIGHT]
        if unknown := [word for word in words if word not in allowed]:
            self.fail(f"{unknown[0]!r} is none of {', '.join(allowed)}.", param, ctx)
        return frozenset(words)


@click.command(cls=ReportingCommand, short_help="Score verdicts on captures with known ground truth.")
@click.argument("corpora", nargs=-1, required=True, metavar="CORPUS...")
@click.option(
    "--detector", metavar="COMMAND",
    help="Also score this detector: a command that takes the captures as its last arguments and writes detect-2 JSON.",
)  # fmt: skip
@click.option(
    "--timeout", "timeout_s", type=Duration(), metavar="T",
    help="Longest time that COMMAND may take for one run.  [default: 600s]",
)  # fmt: skip
@click.option(
    "--against", metavar="BASELINE.json",
    help="Compare with the --json of an earlier run; exit with status 1 if a rate became significantly worse.",
)  # fmt: skip
@click.option(
    "--unpaired", is_flag=True, help="The baseline is of other captures: use Fisher's test instead of McNemar's."
)
@click.option(
    "--significance", type=Number(0, 1, min_open=True, max_open=True), metavar="P",
    help="Significance level of these tests.  [default: 0.05]",
)  # fmt: skip
@click.option(
    "--fail-on", type=Scores(), metavar="SCORES",
    help="Exit with status 1 if a verdict of pepscope has one of these scores: false-alarm, reversed, other-kind, "
    "not-found.",
)  # fmt: skip
@least_probability_option
@memory_option
@click.option(
    "--jobs", type=click.IntRange(1), metavar="N", help="Processes that share the work. [default: all usable cores]"
)
@report_option("json", "Write JSON (schema validate-1).", alone=True)
@report_option("html", "Write a page.")
@report_option("junit", "Write JUnit XML, one test case per label.")
@report_option("sarif", "Write SARIF 2.1.0, one result per wrong verdict.")
def validate(
    corpora: tuple[str, ...],
    detector: str | None,
    timeout_s: float | None,
    against: str | None,
    unpaired: bool,
    significance: float | None,
    fail_on: frozenset[str] | None,
    least_probability: float,
    memory_bytes: int | None,
    jobs: int | None,
    json_to: str | None,
    html_to: str | None,
    junit_to: str | None,
    sarif_to: str | None,
) -> None:
    """Score verdicts on captures with known ground truth.

    CORPUS is a directory with captures and their labels in manifest.csv (docs/guide/validate.md has its columns), or
    what `pepscope simulate -o` wrote: one run, or a campaign that kept its captures.
    """
    from detector.corpora.validation.validate import DETECTOR_TIMEOUT_S, SIGNIFICANCE
    from detector.corpora.validation.validate import validate as run
    from pepscope.command_line.progress import Progress

    if detector is None and timeout_s is not None:
        raise UsageError("--timeout is for --detector: give both.")
    if against is None and unpaired:
        raise UsageError("--unpaired is for --against: give both.")
    if against is None and detector is None and significance is not None:
        raise UsageError("--significance is for --against or --detector: give one of them, too.")
    with Progress("validating") as progress:
        result = run(
            corpora, detector=detector, detector_timeout_s=DETECTOR_TIMEOUT_S if timeout_s is None else timeout_s,
            against=against, unpaired=unpaired, significance=SIGNIFICANCE if significance is None else significance,
            least_probability=least_probability, memory_bytes=memory_bytes, processes=jobs, progress=progress,
        )  # fmt: skip
    _write(result, {"json": json_to, "html": html_to, "junit": junit_to, "sarif": sarif_to})
    scores = {judged.score.value for judged in result.detectors[0].judgements}
    if result.is_worse or (fail_on is not None and scores & fail_on):
        raise SystemExit(1)


def _write(result: Validation, files: dict[str, str | None]) -> None:
    """The reports of `files`, by format, and the table where none of them goes to standard output."""
    from pepscope.plugins import writer

    for name, path in files.items():
        if path is None:
            continue
        if name == "json":
            text = json.dumps(result.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
            write_output(path, text + "\n")
        else:
            writer(f"validation-{name}")(result, path)
        announce(path)
    if STANDARD_OUTPUT not in files.values():
        writer("validation-table")(result, sys.stdout, sys.stdout.isatty())
