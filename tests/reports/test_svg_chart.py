"""Line charts as SVG."""

from __future__ import annotations

from xml.etree import ElementTree

from pepscope.results.charts import Chart, Line
from reports.figures.svg_chart import chart_svg

TEXT = "{http://www.w3.org/2000/svg}text"


def drawn(label: str) -> tuple[float, dict[str, float]]:
    """The height of a chart whose one tick has this label, and how far below its top each text of one line is."""
    line = Line("line", [1.0, 2.0], [3.0, 4.0])
    chart = Chart("chart", "title", "across", "upwards", (line,), x_ticks=(1.0,), x_label=lambda _: label)
    svg = ElementTree.fromstring(chart_svg(chart))
    return float(svg.attrib["height"]), {
        text.text: float(text.attrib["y"]) for text in svg.iter(TEXT) if text.text and "y" in text.attrib
    }


def test_labels_of_several_lines_have_room_above_the_title_of_their_axis() -> None:
    plain_height, plain = drawn("one")
    height, texts = drawn("one\ntwo & more\nthree")
    assert texts["one"] == plain["one"], "the frame keeps its size"
    assert plain["one"] < texts["two & more"] < texts["three"] < texts["across"] < height
    assert height - plain_height == texts["three"] - texts["one"]
