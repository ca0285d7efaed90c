"""A sign for each verdict, so that readers can distinguish verdicts without colours."""

from __future__ import annotations

from pepscope.results.verdicts import Verdict

_SHAPES = {
    # two ends and what is between them: one line, a line with a gap, a box, dots
    Verdict.REGULAR: '<circle cx="4" cy="8" r="3"/><path d="M4 8H36"/><circle cx="36" cy="8" r="3"/>',
    Verdict.SPLIT_TCP: '<circle cx="4" cy="8" r="3"/><path d="M4 8H16M16 3V13M24 3V13M24 8H36"/>'
    '<circle cx="36" cy="8" r="3"/>',
    Verdict.TCP_PROXY: '<circle cx="4" cy="8" r="3"/><path d="M4 8H14M26 8H36"/>'
    '<rect x="14" y="3" width="12" height="10"/><circle cx="36" cy="8" r="3"/>',
    Verdict.INCONCLUSIVE: '<circle cx="4" cy="8" r="3"/><path d="M9 8H31" stroke-dasharray="3 3.5"/>'
    '<circle cx="36" cy="8" r="3"/>',
}


def sign(kind: Verdict) -> str:
    """The verdict's sign as SVG in the colour of the text around it."""
    return f'<svg class="sign" viewBox="0 0 40 16" aria-hidden="true">{_SHAPES[kind]}</svg>'
