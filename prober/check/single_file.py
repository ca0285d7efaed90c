"""The check as one file that runs wherever Python 3.11 does: `python -m prober.check.single_file pepscope-client.pyz`.

It holds those modules of pepscope that a check imports, which need nothing but the standard library.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipapp
from pathlib import Path

_LIST = (
    "import sys, prober.check.__main__\n"
    "for name, module in sorted(sys.modules.items()):\n"
    "    if name.partition('.')[0] in ('pepscope', 'prober') and getattr(module, '__file__', None):\n"
    "        print(name, module.__file__, sep='\\t')\n"
)
_START = """import sys

if sys.platform != "linux" or sys.version_info < (3, 11):
    sys.exit("pepscope-client: a check needs Linux and Python 3.11: other systems do not tell how far packets travel")

from prober.check.__main__ import main

sys.exit(main())
"""


def write_single_file(target: Path) -> None:
    """Write the file. Raises OSError."""
    listed = subprocess.run([sys.executable, "-c", _LIST], check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory(prefix="pepscope-client-") as scratch:
        directory = Path(scratch)
        for line in listed.splitlines():
            name, file = line.split("\t")
            inner = Path(*name.split("."))
            place = directory / (inner / "__init__.py" if file.endswith("__init__.py") else inner.with_suffix(".py"))
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(Path(file).read_bytes())
        (directory / "__main__.py").write_text(_START, encoding="utf-8")
        zipapp.create_archive(directory, target, interpreter="/usr/bin/env python3", compressed=True)


def main() -> int:
    """Exit status 0, or 2 with a sentence."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m prober.check.single_file FILE\n")
        return 2
    try:
        write_single_file(Path(sys.argv[1]))
    except OSError as error:
        sys.stderr.write(f"{sys.argv[1]} cannot be written: {error.strerror or error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
