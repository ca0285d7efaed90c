"""Compile the extension for every platform that has wheels, without linking: `cargo check`, with Zig for C sources.

A target whose standard library is not installed is said and left out; `rustup target add` brings it. MSVC's headers are
Windows' own, so that Windows is checked with the GNU target: the sources are the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from distribution.build_wheel import has_standard_library
from distribution.targets import GLIBC, ROOT, TARGETS

_MSVC, _GNU = "-msvc", "-gnu"


def targets() -> list[str]:
    """The Rust targets to check, one for every wheel."""
    return [each.rust.removesuffix(GLIBC).replace(_MSVC, _GNU) for each in TARGETS.values()]


def check(target: str) -> bool:
    """Whether the extension compiles for a target; the compiler says why not."""
    environment = {
        **os.environ,
        "PYO3_CROSS_PYTHON_VERSION": "3.11",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
    # C libraries of musl are static, unless this is said: then the extension's kind of crate cannot be made.
    if "musl" in target:
        environment["CARGO_ENCODED_RUSTFLAGS"] = "-Ctarget-feature=-crt-static"
    command = ["cargo-zigbuild", "check", "--quiet", "--package", "pepscope-bindings", "--target", target]
    return subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode == 0


def main() -> None:
    """Check all, and end with 1 where one does not compile."""
    failed = []
    for target in targets():
        if not has_standard_library(target):
            sys.stdout.write(f"{target}: left out, no standard library here (rustup target add {target})\n")
            continue
        compiles = check(target)
        sys.stdout.write(f"{target}: {'compiles' if compiles else 'does not compile'}\n")
        if not compiles:
            failed.append(target)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
