"""What all pages share: their assets, what is compressed in them, figures as data, and what a browser may do."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Sequence
from html import escape
from importlib import resources

from pepscope.extras import needed
from reports.figures.flow_figures import Figure

#: What the browser may do: run and style what is in the file, and load nothing.
CONTENT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
)

#: The same for a page of a site, which also loads the site's own files, from a disk or a web server.
SITE_CONTENT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'self' file:; style-src 'unsafe-inline' 'self' file:; "
    "img-src data: blob:; font-src data:"
)

#: The same for a page that runs nothing.
STILL_CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def asset(name: str) -> str:
    """A file of `reports/assets` as text."""
    return resources.files("reports").joinpath("assets", name).read_text(encoding="utf-8")


def plotly_library() -> bytes:
    """plotly.js as the plotly package ships it, 5 MB."""
    with needed("html"):
        package = resources.files("plotly")
    return package.joinpath("package_data", "plotly.min.js").read_bytes()


def plotly_element(address: str | None = None) -> str:
    """The element that `figures.js` has plotly.js from: the library itself, compressed to 2 MB, or its address."""
    if address is None:
        return f'<script type="text/plain" id="plotly-source">{compressed(plotly_library())}</script>'
    return f'<script type="text/plain" id="plotly-source" data-address="{escape(address)}"></script>'


def compressed(content: bytes) -> str:
    """Content as `inflate.js` reads it: zlib's format (RFC 1950) in base64."""
    return base64.b64encode(zlib.compress(content, 9)).decode("ascii")


def fill(template: str, values: dict[str, str]) -> str:
    """Put values in place of `{{name}}` in one pass, so that a value that looks like a place stays as it is."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], template)


def html_document(
    title: str, body: str, *, styles: Sequence[str] = (), policy: str | None = CONTENT_POLICY, head: str = ""
) -> str:
    """A whole HTML document: `title` and `body`, both as HTML, in the frame of all pages.

    `styles` are style sheets of `reports/assets` that stand in it, `head` more elements of its head, and `policy` what
    the browser may do (None: what comes with the page says it).
    """
    style = "".join(map(asset, styles))
    return fill(
        asset("frame.html"),
        {
            "policy": f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n' if policy else "",
            "head": head,
            "title": title,
            "style": f"<style>{style}</style>\n" if style else "",
            "body": body,
        },
    )


def figure_data(key: int | str, flows: Sequence[Sequence[Figure]]) -> str:
    """The element that `figures.js` reads: the figures of a connection or group, flow by flow."""
    document = [
        [
            {
                "x": figure.horizontal_title,
                "y": figure.vertical_title,
                "zero": figure.from_zero,
                "log": figure.logarithmic,
                "rows": figure.rows,
                "traces": [
                    {"role": t.role, "label": t.label, "mode": t.mode, "x": t.horizontal, "y": t.vertical}
                    for t in figure.traces
                ],
            }
            for figure in flow
        ]
        for flow in flows
    ]
    text = json.dumps(document, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="figures-{key}">{text}</script>\n'
