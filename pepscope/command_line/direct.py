"""Calls whose words need no parser: the command runs without click, whose import takes longer than a small capture.

All others (options, help, what may be mistaken) are read by click, which does the same for those calls.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

#: The option of a report that stands alone, and the end of a word that would be its file.
_JSON, _JSON_FILE = "--json", ".json"

#: Where shells ask click for completions.
_COMPLETION = "_PEPSCOPE_COMPLETE"


def direct_call(words: Sequence[str]) -> Callable[[], int] | None:
    """What `pepscope inspect [--json] FILE...` does, as a function that returns its exit status; None for all others.

    `words` are those behind the program's name.
    """
    if not words or words[0] != "inspect" or _COMPLETION in os.environ:
        return None
    files = [word for word in words[1:] if word != _JSON]
    reports = len(words) - 1 - len(files)
    if not files or reports > 1 or any(not file or file.startswith("-") or file.endswith(_JSON_FILE) for file in files):
        return None
    return lambda: _inspect(files, as_json=reports == 1)


def _inspect(captures: Sequence[str], *, as_json: bool) -> int:
    from pepscope.command_line.failures import written_out
    from pepscope.command_line.listing import Listing, list_connections
    from pepscope.plugins import freeze_imports
    from pepscope.whole_file import STANDARD_OUTPUT

    freeze_imports()
    listing = Listing(captures, {"json": STANDARD_OUTPUT} if as_json else {})
    written_out(lambda: list_connections(listing))
    return 0
