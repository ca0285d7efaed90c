"""Build the wheel of one platform into dist/, the same way on a desk and in the release workflow.

On Linux Zig links against an old glibc (or musl), so that no container of an old system is needed and one machine
builds for every processor; the wheel is held to what its tag promises. macOS and Windows build natively.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from distribution.platform_tag import TagError, hold_to_tag
from distribution.targets import GLIBC, ROOT, TARGETS, Target, environment_of


def has_standard_library(target: str) -> bool:
    """Whether this toolchain can compile for a target."""
    asked = ["rustc", "--print", "target-libdir", "--target", target]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return Path(found).is_dir()


def build(target: Target, directory: Path) -> Path:
    """The finished wheel in `directory`. Raises CalledProcessError, TagError."""
    environment = environment_of(target)
    environment.setdefault("CARGO_TARGET_DIR", str(ROOT / "target" / "wheels"))
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", scratch, str(ROOT)]
        if target.uses_zig:
            command += [f"--config-setting=--build-option=--plat-name={target.tag}"]
        subprocess.run(command, env=environment, check=True)
        (built,) = Path(scratch).glob("*.whl")
        if target.uses_zig:
            hold_to_tag(built, target.tag)
        directory.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(built, directory))


def main() -> None:
    """Read the arguments, and build."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target", choices=TARGETS, nargs="?", default="manylinux-x86_64")
    parser.add_argument("-o", "--outdir", type=Path, default=ROOT / "dist")
    arguments = parser.parse_args()
    rust = TARGETS[arguments.target].rust.removesuffix(GLIBC)
    if not has_standard_library(rust):
        sys.exit(f"this toolchain has no standard library for {rust}: rustup target add {rust}")
    try:
        sys.stdout.write(f"{build(TARGETS[arguments.target], arguments.outdir)}\n")
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
    except TagError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
