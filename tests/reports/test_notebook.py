"""What Python users and notebooks see of a detection: file objects, exceptions, tables, the example notebook."""

from __future__ import annotations

import io
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pepscope
from pepscope.captures.capture import open_capture
from pepscope.errors import (
    CaptureError,
    FilterError,
    MalformedCaptureError,
    MissingCaptureError,
    PepscopeError,
    UnreadableCaptureError,
    UsageError,
)
from pepscope.results.verdicts import Verdict
from reports.detection.notebook import MAX_ROWS
from tests.reports.results_made_by_hand import make_pair, make_result

EXAMPLES = Path(__file__).parents[2] / "examples"
SERVER, MOBILE = EXAMPLES / "split/server.pcap.gz", EXAMPLES / "split/mobile.pcap.gz"


def test_paths_and_file_objects_give_what_names_give():
    by_name = pepscope.detect(str(SERVER), str(MOBILE))
    assert by_name.verdicts == ["split-tcp"]
    assert pepscope.detect(SERVER, MOBILE) == by_name
    with SERVER.open("rb") as server, MOBILE.open("rb") as mobile:
        assert pepscope.detect(server, mobile, jobs=2) == by_name
    unnamed = pepscope.detect(io.BytesIO(SERVER.read_bytes()), io.BytesIO(MOBILE.read_bytes()))
    assert [pair.probability for pair in unnamed.pairs] == [pair.probability for pair in by_name.pairs]
    names = [capture.path for capture in unnamed.captures]
    assert len(set(names)) == 2
    assert all(name.startswith("unnamed-") for name in names)


def test_a_file_object_is_read_from_its_position():
    file = io.BytesIO(b"a header of another program" + SERVER.read_bytes())
    file.seek(27)
    assert open_capture(file).packet_count == open_capture(SERVER).packet_count


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("/no/such/capture.pcap", (MissingCaptureError, FileNotFoundError)),
        ("/etc", (UnreadableCaptureError, OSError)),
        ("/etc/passwd", (MalformedCaptureError, ValueError)),
        (io.BytesIO(b""), (MalformedCaptureError, ValueError)),
        (io.BytesIO(b"hello"), (MalformedCaptureError, ValueError)),
        (io.StringIO("hello"), (UsageError, ValueError)),
        (3, (UsageError, ValueError)),
    ],
)
def test_errors_are_those_that_python_has_for_them(source, kinds):
    with pytest.raises(PepscopeError) as raised:
        pepscope.detect(source)
    for kind in kinds:
        assert isinstance(raised.value, kind)
    assert "/tmp" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_one_file_object_twice_is_refused():
    file = io.BytesIO(SERVER.read_bytes())
    with pytest.raises(UsageError, match="same file"):
        pepscope.detect(file, file)


def test_options_and_filters_raise_value_errors():
    with pytest.raises(ValueError, match="jobs must be at least 1"):
        pepscope.detect(SERVER, MOBILE, jobs=0)
    with pytest.raises(ValueError, match="does not compile") as raised:
        pepscope.detect(SERVER, MOBILE, filter="no such word")
    assert isinstance(raised.value, FilterError)


@pytest.mark.parametrize("kind", [MissingCaptureError, UnreadableCaptureError, MalformedCaptureError])
def test_errors_cross_processes(kind):
    copy = pickle.loads(pickle.dumps(kind("a sentence")))
    assert type(copy) is kind
    assert isinstance(copy, CaptureError)
    assert str(copy) == "a sentence"


def test_a_result_is_short_in_words_and_a_table_in_a_notebook():
    result = pepscope.detect(SERVER, MOBILE)
    assert repr(result) == f"<DetectionResult of '{SERVER}' and '{MOBILE}': 1 split-tcp>"
    assert len(repr(result.pairs[0])) < 1000
    table = result._repr_html_()
    assert table.count("<tr>") == 2
    assert "split-tcp" in table
    assert "10.157.230.89:48252" in table


def test_the_table_counts_what_it_leaves_out_and_escapes():
    pairs = [make_pair(Verdict.SPLIT_TCP, client=f"192.0.2.{number}:<b>") for number in range(MAX_ROWS + 3)]
    table = make_result(*pairs)._repr_html_()
    assert table.count("<tr>") == MAX_ROWS + 1
    assert "3 more: <code>.to_frame()</code>" in table
    assert "<b>1" not in table
    assert ":&lt;b&gt;" in table


def test_the_page_as_text_and_as_a_file(tmp_path):
    result = pepscope.detect(SERVER, MOBILE, series=True)
    text = result.to_html()
    assert text.startswith("<!doctype html>")
    assert result.to_html(tmp_path / "page.html") is None
    assert (tmp_path / "page.html").read_text() == text
    with pytest.raises(OSError, match="cannot be written"):
        result.to_html(tmp_path / "no" / "page.html")


def test_the_example_notebook_runs(tmp_path):
    shutil.copytree(EXAMPLES / "split", tmp_path / "split")
    shutil.copy(EXAMPLES / "verdict.ipynb", tmp_path)
    program = (
        "import nbformat, nbclient\n"
        "book = nbformat.read('verdict.ipynb', 4)\n"
        "nbclient.NotebookClient(book, timeout=300).execute()\n"
        "print([o for c in book.cells for o in c.get('outputs', [])])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=600
    )
    assert "split-tcp relay" in done.stdout
    assert "535 of 539 acknowledgements" in done.stdout
    assert "no such file or directory" in done.stdout
