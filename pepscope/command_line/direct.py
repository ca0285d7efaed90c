"""Calls whose words need no parser: the command runs without click, whose import takes longer than a small capture.

All others (options, help, what may be mistaken) are read by click, which does the same for those calls. The entry
points of the group `pepscope.direct` are functions of files and whether JSON is asked for; they return False where
click has to look at the call.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

GROUP = "pepscope.direct"

#: The option of a report that stands alone, and the end of a word that would be its file.
_JSON, _JSON_FILE = "--json", ".json"

#: Where shells ask click for completions.
_COMPLETION = "_PEPSCOPE_COMPLETE"


def needs_no_parser(words: Sequence[str]) -> bool:
    """Whether words behind the program's name are a command, files, and `--json` once or not at all."""
    files = [word for word in words[1:] if word != _JSON]
    are_plain = all(file and not file.startswith("-") and not file.endswith(_JSON_FILE) for file in files)
    return bool(files) and are_plain and len(words) - 1 - len(files) <= 1 and _COMPLETION not in os.environ


def run_directly(words: Sequence[str]) -> int | None:
    """Run the command and return its exit status; None, and nothing is done, where click has to read the words."""
    if not needs_no_parser(words):
        return None
    from pepscope.plugins import find_own
    from pepscope.processes.garbage import freeze_imports

    entry = find_own(GROUP, words[0])
    if entry is None:
        return None
    from pepscope.command_line.failures import exit_status, written_out

    def run() -> int:
        act = entry.load()
        freeze_imports()
        files = [word for word in words[1:] if word != _JSON]
        return _DONE if written_out(lambda: act(files, _JSON in words)) else _NOT

    status = exit_status(run)
    return None if status == _NOT else status


#: What a function that was run, and one that click has to look at the call for, count as.
_DONE, _NOT = 0, -1
