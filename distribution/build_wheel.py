"""Build the wheel of one platform into dist/, the same way on a desk and in the release workflow.

On Linux Zig links against an old glibc (or musl), so that no container of an old system is needed and one machine
builds for every processor; the wheel is held to what its tag promises. macOS and Windows build natively.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from distribution.platform_tag import TagError, hold_to_tag

ROOT = Path(__file__).parents[1]


#: The version of glibc that wheels ask for, as cargo-zigbuild writes it behind a target.
GLIBC = ".2.28"


@dataclass(frozen=True, slots=True)
class Target:
    """A Rust target, as cargo-zigbuild names it, and the platform tag of its wheel."""

    rust: str
    tag: str
    uses_zig: bool = True


TARGETS = {
    "manylinux-x86_64": Target(f"x86_64-unknown-linux-gnu{GLIBC}", "manylinux_2_28_x86_64"),
    "manylinux-aarch64": Target(f"aarch64-unknown-linux-gnu{GLIBC}", "manylinux_2_28_aarch64"),
    "musllinux-x86_64": Target("x86_64-unknown-linux-musl", "musllinux_1_2_x86_64"),
    "macos-arm64": Target("aarch64-apple-darwin", "macosx_11_0_arm64", uses_zig=False),
    "macos-x86_64": Target("x86_64-apple-darwin", "macosx_10_13_x86_64", uses_zig=False),
    "windows-x86_64": Target("x86_64-pc-windows-msvc", "win_amd64", uses_zig=False),
}


def has_standard_library(target: str) -> bool:
    """Whether this toolchain can compile for a target."""
    asked = ["rustc", "--print", "target-libdir", "--target", target]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return Path(found).is_dir()


def build(target: Target, directory: Path) -> Path:
    """The finished wheel in `directory`. Raises CalledProcessError, TagError."""
    environment = {
        **os.environ,
        "SETUPTOOLS_RUST_CARGO_PROFILE": "release",
        "CARGO_BUILD_TARGET": target.rust,
        "CARGO_PROFILE_RELEASE_STRIP": "symbols",
    }
    environment.setdefault("CARGO_TARGET_DIR", str(ROOT / "target" / "wheels"))
    # Beside this Python are cargo-zigbuild and its Zig.
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    if target.uses_zig:
        environment["CARGO"] = "cargo-zigbuild"
        # A static C library cannot be loaded by Python's.
        environment["CARGO_ENCODED_RUSTFLAGS"] = "-Ctarget-feature=-crt-static" if "musl" in target.rust else ""
    else:
        environment["_PYTHON_HOST_PLATFORM"] = target.tag.replace("_", "-", 1)
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
