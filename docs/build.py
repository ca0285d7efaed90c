"""Writes docs/commands.md from the help of every command, and docs/glossary.md from the pages' tooltips."""

from __future__ import annotations

import textwrap
from pathlib import Path

import click

from detector.methods import findings as method_findings
from pepscope.cli import pepscope_command
from pepscope.results.finding import VERSION
from pepscope.results.hypotheses import Hypothesis
from prober.experiments.registry import findings as experiment_findings
from reports.glossary import glossary

PAGE = Path(__file__).with_name("commands.md")
FINDINGS = Path(__file__).parent / "methods" / "findings.md"
GLOSSARY = Path(__file__).with_name("glossary.md")
WIDTH = 80
PROSE_WIDTH = 120


def page() -> str:
    """The whole page as Markdown."""
    parts = ["# Commands\n", "Written by `make docs` from the commands' own help.\n"]
    context = click.Context(pepscope_command, info_name="pepscope", terminal_width=WIDTH, max_content_width=WIDTH)
    for name in pepscope_command.list_commands(context):
        command = pepscope_command.get_command(context, name)
        if command is None:
            raise SystemExit(f"{name} is no click command")
        inner = click.Context(command, parent=context, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)
        parts.append(_section(f"pepscope {name}", command, inner))
        if isinstance(command, click.Group):
            for part in command.list_commands(inner):
                deeper = command.get_command(inner, part)
                if deeper is not None:
                    context_of_part = click.Context(
                        deeper, parent=inner, info_name=part, terminal_width=WIDTH, max_content_width=WIDTH
                    )
                    parts.append(_section(f"pepscope {name} {part}", deeper, context_of_part))
    return "\n".join(parts)


def _section(title: str, command: click.Command, context: click.Context) -> str:
    return f"## {title}\n\n```text\n{command.get_help(context)}\n```\n"


def glossary_page() -> str:
    """The glossary as Markdown: a term, its meaning and the source that the sentence follows."""
    about = (
        "Terms of the field as this project uses them. The pages that pepscope writes show the same sentences as "
        "tooltips. Written by `make docs` from reports/assets/glossary.toml.\n"
    )
    parts = ["# Glossary\n", textwrap.fill(about, PROSE_WIDTH) + "\n"]
    entries = (f"**{name}**: {term.meaning} ({term.source})" for name, term in glossary().items())
    parts += [f"{textwrap.fill(entry, PROSE_WIDTH, break_on_hyphens=False)}\n" for entry in entries]
    return "\n".join(parts)


def findings_page() -> str:
    """The table of weights as Markdown: every finding, what it says against each hypothesis, and why."""
    about = (
        f"Version {VERSION} of the table. A number is the natural logarithm of how badly a hypothesis explains the "
        "finding at strength 1, relative to the one that explains it best ([verdict](verdict.md)). Each row stands in "
        "the file of the method or experiment that makes the finding. Written by `make docs`.\n"
    )
    found = {**method_findings(), **experiment_findings()}
    rows = sorted(found.values(), key=lambda finding: (finding.weight.family, finding.value))
    head = [
        "| finding | family | end to end | relay | store | local ack. | reason |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    body = [
        f"| `{one.value}` | {one.weight.family} | "
        + " | ".join(f"{one.weight.of(each):g}" for each in Hypothesis)
        + f" | {one.weight.reason} |"
        for one in rows
    ]
    return "\n".join(["# Findings and their weights\n", about, *head, *body, ""])


if __name__ == "__main__":
    FINDINGS.write_text(findings_page(), encoding="utf-8")
    GLOSSARY.write_text(glossary_page(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
