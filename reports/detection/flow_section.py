"""The figures of one direction of a connection, to be folded away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from pepscope.captures.packets import Direction
from reports.figures.flow_figures import Figure
from reports.quantities import format_bytes

#: A direction that carries less than this share of the other's payload, a request say, is folded away.
MINOR_FLOW = 0.05


def flow_section(
    key: int, position: int, direction: Direction, figures: Sequence[Figure], payload_bytes: Mapping[Direction, int]
) -> str:
    """The figures that stand at `position` of the figures with this key in the page's data; nothing without any."""
    way = "Upload, client to server" if direction is Direction.UP else "Download, server to client"
    drawings = "".join(
        f'<figure><h4>{escape(figure.title)}</h4><div class="plot" data-connection="{key}" data-flow="{position}" '
        f'data-figure="{number}" role="group" aria-label="{escape(figure.title)}"></div>'
        f'<figcaption>{escape(figure.caption)} <span class="note">{escape(figure.note)}</span></figcaption></figure>'
        for number, figure in enumerate(figures)
    )
    if not drawings:
        return ""
    main = payload_bytes[direction] >= MINOR_FLOW * payload_bytes[direction.reverse]
    return (
        f'<details class="flow"{" open" if main else ""}><summary><h3>{way}: {format_bytes(payload_bytes[direction])}'
        f'</h3></summary><div class="figures">{drawings}</div></details>'
    )
