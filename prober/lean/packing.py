"""The client as one file, and as a wheel: `python -m prober.lean.packing FILE.pyz | DIRECTORY`.

Both hold those modules of pepscope that measuring needs, which use the standard library alone.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import tempfile
import zipapp
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pepscope

#: Packages of the prober that measure at the mobile's end; what they import of pepscope comes with them.
_PACKAGES = ("archive", "check", "client", "experiments", "host", "lean", "measurement", "protocol", "run")
_LIST = f"""
import importlib, pkgutil, sys
import prober, prober.commands.default_plan, pepscope.captures.live.tun
for package in {_PACKAGES}:
    for found in pkgutil.walk_packages([f"{{prober.__path__[0]}}/{{package}}"], f"prober.{{package}}."):
        if not found.name.endswith("packing"):
            importlib.import_module(found.name)
for name, module in sorted(sys.modules.items()):
    if name.partition(".")[0] in ("pepscope", "prober") and getattr(module, "__file__", None):
        print(name, module.__file__, sep="\\t")
"""
_ASSET = "prober/assets/default_plan.toml"
_START = """import sys

if sys.version_info < (3, 11):
    sys.exit("pepscope-client: this needs Python 3.11 or later, got %d.%d" % sys.version_info[:2])

from prober.lean.__main__ import main

sys.exit(main())
"""
_DATE = (2020, 1, 1, 0, 0, 0)


def write_single_file(target: Path) -> None:
    """Write the client as a zip archive that Python runs. Raises OSError."""
    with tempfile.TemporaryDirectory(prefix="pepscope-client-") as scratch:
        directory = Path(scratch)
        for name, content in {**files_of_client(), "__main__.py": _START.encode()}.items():
            place = directory / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        zipapp.create_archive(directory, target, interpreter="/usr/bin/env python3", compressed=True)


def write_wheel(directory: Path) -> Path:
    """Write the client as a wheel (PEP 427) with the command `pepscope-client`, the same bytes each time.

    Raises OSError.
    """
    version = pepscope.__version__
    about = f"pepscope_client-{version}.dist-info"
    members = {
        **files_of_client(),
        f"{about}/METADATA": (
            f"Metadata-Version: 2.1\nName: pepscope-client\nVersion: {version}\nRequires-Python: >=3.11\n"
            "Summary: The measuring client of pepscope, with the standard library alone\nLicense: Apache-2.0\n"
        ).encode(),
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: pepscope\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": b"[console_scripts]\npepscope-client = prober.lean.__main__:main\n",
    }
    rows = [f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in members.items()]
    members[f"{about}/RECORD"] = "".join([*rows, f"{about}/RECORD,,\n"]).encode()
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / f"pepscope_client-{version}-py3-none-any.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return target


def files_of_client() -> Mapping[str, bytes]:
    """The files of the client, by their place."""
    listed = subprocess.run([sys.executable, "-c", _LIST], check=True, capture_output=True, text=True).stdout
    found = {}
    for line in listed.splitlines():
        name, file = line.split("\t")
        place = f"{name.replace('.', '/')}{'/__init__' if file.endswith('__init__.py') else ''}.py"
        found[place] = Path(file).read_bytes()
    found[_ASSET] = (Path(__file__).parents[2] / _ASSET).read_bytes()
    return found


def _digest(content: bytes) -> str:
    """As RECORD writes it (PEP 376, PEP 427)."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def main() -> int:
    """Exit status 0, or 2 with a sentence."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m prober.lean.packing FILE.pyz | DIRECTORY\n")
        return 2
    target = Path(sys.argv[1])
    try:
        if target.suffix == ".pyz":
            write_single_file(target)
        else:
            write_wheel(target)
    except OSError as error:
        sys.stderr.write(f"{target} cannot be written: {error.strerror or error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
