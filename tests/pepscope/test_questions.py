"""Each question of a newcomer in docs/questions.md is answered by its grep."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PAGE = TOP / "docs" / "questions.md"
#: A grep that finds more files than this answers nothing.
MOST_FILES = 5
QUESTIONS_PER_ROOM = 5
ROOMS = {
    "pepscope", "detector", "prober", "reference_proxy", "reference_sim", "papers", "reports", "crates/wire",
    "crates/connections", "crates/evidence", "crates/text", "crates/path", "crates/tcp", "crates/applications",
    "crates/drive", "benchmarks",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Question:
    room: str
    text: str
    command: str
    file: str


def _questions() -> list[Question]:
    found: list[Question] = []
    room = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            room = line.removeprefix("## ")
        elif row := re.fullmatch(r"\| ([^|]+) \| `(grep [^|`]+)` \| `([^|`]+)` \|", line):
            found.append(Question(room, *row.groups()))
    return found


QUESTIONS = _questions()


def test_each_room_has_its_questions() -> None:
    assert Counter(question.room for question in QUESTIONS) == dict.fromkeys(ROOMS, QUESTIONS_PER_ROOM)
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "`grep " in line]
    assert len(rows) == len(QUESTIONS), "a row has another form than the others"


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text)
def test_the_grep_finds_the_file_and_few_others(question: Question) -> None:
    words = shlex.split(question.command)
    assert words[0] == "grep"
    assert any(word.startswith(question.room) for word in words[2:]), "the grep looks into the room itself"
    ran = subprocess.run(words, cwd=TOP, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{question.command} finds nothing {ran.stderr}"
    files = {line.split(":", 1)[0] for line in ran.stdout.splitlines()}
    assert question.file in files
    assert len(files) <= MOST_FILES, sorted(files)
