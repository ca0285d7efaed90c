"""Digests of captures: those of the files on disk, taken beside the analysis, and left out where a file changes."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pandas as pd

import pepscope
from pepscope.captures.files.digest import FileDigest

CORPUS = Path(__file__).parents[2] / "corpus"
PATHS = [CORPUS / f"spl_ha_dl_short10k.{side}.pcap.gz" for side in ("srv", "mob")]
DIGESTS = [hashlib.sha256(path.read_bytes()).hexdigest() for path in PATHS]


def test_the_digest_is_that_of_the_file() -> None:
    assert [FileDigest(str(path)).hexadecimal() for path in PATHS] == DIGESTS
    assert FileDigest("-").hexadecimal() is None
    assert FileDigest(io.BytesIO(b"bytes")).hexadecimal() is None
    with PATHS[0].open("rb") as file:
        assert FileDigest(file).hexadecimal() == DIGESTS[0]
        file.read(1)
        assert FileDigest(file).hexadecimal() is None


def test_a_file_that_changed_has_none(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(b"before")
    digest = FileDigest(str(path))
    assert digest._thread is not None
    digest._thread.join()
    path.write_bytes(b"after it was read")
    assert digest.changed()
    assert digest.hexadecimal() is None


def test_without_a_digest_a_change_is_seen_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(b"before")
    digest = FileDigest(str(path), is_wanted=False)
    assert digest.hexadecimal() is None
    assert not digest.changed()
    path.write_bytes(b"after it was read")
    assert digest.changed()
    assert not FileDigest("-", is_wanted=False).changed()


def test_results_state_none_where_none_is_wanted() -> None:
    for wanted, digest in ((True, DIGESTS[0]), (False, None)):
        (summary,) = pepscope.detect(PATHS[0], digests=wanted).captures
        assert summary.sha256 == digest


def test_every_form_says_what_judged_which_files(tmp_path: Path) -> None:
    table, junit = tmp_path / "verdicts.parquet", tmp_path / "verdicts.xml"
    command = [sys.executable, "-m", "pepscope", "detect", *map(str, PATHS), "--least-probability", "0.9"]
    done = subprocess.run(
        [*command, "--parquet", str(table), "--junit", str(junit), "--csv"],
        capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    for frame in (pd.read_csv(io.StringIO(done.stdout)), pd.read_parquet(table)):
        row = frame.iloc[0]
        assert {row["sha256_a"], row["sha256_b"]} == set(DIGESTS)
        assert row["version"] == pepscope.__version__
        assert json.loads(row["options"])["least_probability"] == 0.9
        assert row["started"].endswith("Z")
    packets = pd.read_parquet(tmp_path / "verdicts.evidence.parquet")["packets"]
    assert any(len(json.loads(text) or ()) for text in packets)
    properties = {each.get("name"): each.get("value") for each in ElementTree.parse(junit).iter("property")}
    assert properties["pepscope"] == pepscope.__version__
    assert [properties[f"capture.{number}.sha256"] for number in (1, 2)] == DIGESTS
    assert properties["option.least_probability"] == "0.9"
    page = tmp_path / "page.html"
    subprocess.run([*command, "--html", str(page)], capture_output=True, timeout=600, check=True)
    text = page.read_text()
    assert all(digest in text for digest in DIGESTS)
    assert f"pepscope {pepscope.__version__}" in text


def test_standard_input_has_no_digest() -> None:
    content = gzip.decompress(PATHS[0].read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "pepscope", "detect", "-", "--json"],
        input=content, capture_output=True, timeout=600, check=True,
    )  # fmt: skip
    (capture,) = json.loads(done.stdout)["captures"]
    assert capture["sha256"] is None
    assert capture["started"] is not None
