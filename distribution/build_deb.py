"""Make a Debian package of a wheel: its libraries below /usr/lib/pepscope, the command, completion and man pages.

The libraries are those of the Python that runs this, which the package then depends on.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import pepscope

ROOT = Path(__file__).parents[1]
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_LIBRARIES = "usr/lib/pepscope"
_COMMAND = f"""#!/bin/sh
PYTHONPATH=/{_LIBRARIES} exec python{{version}} -c 'from pepscope.cli import main; main()' "$@"
"""
_CONTROL = """Package: pepscope
Version: {pepscope}
Architecture: {architecture}
Maintainer: pepscope <pepscope@localhost>
Depends: python{version}, libc6 (>= 2.28), libpcap0.8 | libpcap0.8t64
Recommends: iproute2, nftables
Section: net
Priority: optional
Description: find split TCP connections in packet captures
 pepscope tells from captures whether a middlebox in the network splits TCP
 connections, and how.
"""


def build(wheel: Path, directory: Path) -> Path:
    """The package in `directory`. Raises CalledProcessError."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    architecture = _ARCHITECTURES[platform.machine()]
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch)
        tree.chmod(0o755)
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--no-compile"]
        subprocess.run([*install, "--target", str(tree / _LIBRARIES), str(wheel)], check=True)
        _write(tree / "usr/bin/pepscope", _COMMAND.format(version=version), 0o755)
        for shell, place in (
            ("bash", "bash-completion/completions/pepscope"),
            ("zsh", "zsh/vendor-completions/_pepscope"),
        ):
            _write(tree / "usr/share" / place, _completion(tree, shell))
        pages = [sys.executable, str(ROOT / "distribution" / "man_pages.py"), str(tree / "usr/share/man/man1")]
        subprocess.run(pages, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
        control = _CONTROL.format(pepscope=pepscope.__version__, architecture=architecture, version=version)
        _write(tree / "DEBIAN/control", control)
        directory.mkdir(parents=True, exist_ok=True)
        package = directory / f"pepscope_{pepscope.__version__}_{architecture}.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zzstd", "--build", str(tree), str(package)], check=True)
    return package


def _completion(tree: Path, shell: str) -> str:
    command = [sys.executable, "-c", "from pepscope.cli import main; main()", "completion", shell]
    environment = {**os.environ, "PYTHONPATH": str(tree / _LIBRARIES)}
    return subprocess.run(command, env=environment, cwd=tree, capture_output=True, text=True, check=True).stdout


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("-o", "--outdir", type=Path, default=ROOT / "dist")
    arguments = parser.parse_args()
    sys.stdout.write(f"{build(arguments.wheel, arguments.outdir)}\n")
