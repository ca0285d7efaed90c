"""What `pepscope detect` imports and starts before it judges captures."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.detector.corpus import CORPUS

ENDS = [str(CORPUS / f"reg_bidir.{end}.pcap.gz") for end in ("srv", "mob")]
SPLIT_ENDS = [str(CORPUS / f"spl_ha_dl_large_umts.{end}.pcap.gz") for end in ("srv", "mob")]

#: Names of modules, then what the environment says of linear algebra; behind the results.
PROGRAM = """
import os, sys
from pepscope.cli import main
sys.argv = ["pepscope", "detect", "--quiet", *sys.argv[1:]]
try:
    main()
finally:
    print(" ".join(sys.modules))
    print(os.environ["OPENBLAS_NUM_THREADS"])
"""


def modules_and_threads(
    *options: str, captures: Sequence[str] = ENDS, environment: Mapping[str, str] | None = None
) -> tuple[set[str], str]:
    inherited = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *options, *captures],
        env={**inherited, **(environment or {})},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    *_, modules, threads = done.stdout.splitlines()
    return set(modules.split()) - of_numpy(), threads


@cache
def of_numpy() -> set[str]:
    """Masked arrays, where NumPy brings them with it: before release 2."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys, numpy; print(*sys.modules)"], stdout=subprocess.PIPE, check=True, text=True
    )
    return {*done.stdout.split()} & {"numpy.ma"}


def test_one_process_imports_nothing_that_others_or_plug_ins_need() -> None:
    modules, threads = modules_and_threads("--jobs", "1", "--json")
    assert "detector.verdict.judging" in modules
    assert not modules & {"multiprocessing", "importlib.metadata", "numpy.ma", "pepscope.processes.forked_parts"}
    assert threads == "1"


def test_a_split_whose_buffer_fills_needs_no_masked_arrays() -> None:
    modules, _ = modules_and_threads("--jobs", "1", "--json", captures=SPLIT_ENDS)
    assert "numpy.ma" not in modules


@pytest.mark.parametrize("captures", [ENDS, ENDS[:1]], ids=["pair", "one"])
def test_parquet_needs_no_pandas(captures: Sequence[str], tmp_path: Path) -> None:
    modules, _ = modules_and_threads("--parquet", str(tmp_path / "verdicts.parquet"), captures=captures)
    assert "pyarrow.parquet" in modules
    assert "pandas" not in modules


def test_reading_can_begin_before_what_judges_is_imported() -> None:
    program = "import sys, detector.commands.detecting, detector.detection; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True, text=True)
    assert not {*done.stdout.split()} & {"numpy", "pepscope.results.verdicts", "detector.detection.two_captures"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="one process judges where none can be forked")
def test_several_processes_and_threads_are_had_for_the_asking() -> None:
    modules, threads = modules_and_threads("--jobs", "2", environment={"OPENBLAS_NUM_THREADS": "2"})
    assert "pepscope.processes.forked_parts" in modules
    assert threads == "2"


def test_one_capture_needs_neither_masked_arrays_nor_datagrams(tmp_path: Path) -> None:
    modules, _ = modules_and_threads("--json", str(tmp_path / "verdicts.json"), captures=ENDS[:1])
    assert {"numpy", "detector.one_capture.detection", "pepscope.results.encoding.pairs"} <= modules
    assert not modules & {"numpy.ma", "pepscope.captures.datagrams"}


def test_the_table_of_one_capture_needs_neither_logging_nor_json_nor_click() -> None:
    program = (
        "import sys; from pepscope.command_line.direct import run_directly\n"
        "assert run_directly(['detect', *sys.argv[1:]]) == 0; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, ENDS[0]], stdout=subprocess.PIPE, check=True, text=True)
    modules = {*done.stdout.splitlines()[-1].split()}
    assert "detector.one_capture.detection" in modules
    assert not modules & {"logging", "json", "click"}
