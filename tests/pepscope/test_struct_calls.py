"""mypy, as it is set up here, finds functions of `dataclasses` that are given a msgspec Struct."""

from __future__ import annotations

from pathlib import Path

from mypy import api

SETTINGS = Path(__file__).parents[2] / "setup.cfg"
MODULE = """
from dataclasses import asdict, dataclass, fields, replace
import dataclasses
import msgspec

class Answer(msgspec.Struct, frozen=True):
    bytes: int

class Longer(Answer, frozen=True):
    more: int

@dataclass(frozen=True)
class Plain:
    bytes: int

def ask(answer: Answer | None, plain: Plain, kind: type[Longer]) -> None:
    replace(plain, bytes=1)
    msgspec.structs.replace(Answer(1), bytes=2)
    asdict(plain), fields(Plain)
    replace(Answer(1), bytes=2)
    if answer is not None:
        dataclasses.asdict(answer)
    fields(Longer)
    fields(kind)
    dataclasses.astuple(Longer(1, 2))
"""


def test_no_struct_is_given_to_functions_of_dataclasses(tmp_path: Path) -> None:
    module = tmp_path / "asking.py"
    module.write_text(MODULE)
    told, complaint, _ = api.run([f"--config-file={SETTINGS}", f"--cache-dir={tmp_path / 'cache'}", str(module)])
    assert not complaint
    lines = MODULE.splitlines()
    found = [
        (lines[int(line.split(":")[1]) - 1].strip(), line.partition("got the Struct ")[2].partition(":")[0])
        for line in told.splitlines()
        if "must be given a dataclass" in line
    ]
    assert found == [
        ("replace(Answer(1), bytes=2)", "Answer"),
        ("dataclasses.asdict(answer)", "Answer"),
        ("fields(Longer)", "Longer"),
        ("fields(kind)", "Longer"),
        ("dataclasses.astuple(Longer(1, 2))", "Longer"),
    ], told
