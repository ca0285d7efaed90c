"""The platforms that have wheels, and the environment in which the extension is compiled for one of them.

`python -m distribution.targets COMMAND...` runs a command in that of manylinux on x86-64. Where it has compiled the
extension, nothing is left to compile for the wheel. Standard library only, since it runs before anything is installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

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


def environment_of(target: Target) -> dict[str, str]:
    """This process's environment, with what cargo and setuptools-rust read."""
    environment = {
        **os.environ,
        "SETUPTOOLS_RUST_CARGO_PROFILE": "release",
        "CARGO_BUILD_TARGET": target.rust,
        "CARGO_PROFILE_RELEASE_STRIP": "symbols",
    }
    # Beside this Python are cargo-zigbuild and its Zig.
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    # Half of the time that C libraries take to compile is their optimisation: .ci/run does with less of it.
    if flags := environment.get("PEPSCOPE_WHEEL_CFLAGS"):
        environment["CFLAGS"] = flags
    # By one name, however it was started: pyo3 is compiled again where that changes.
    environment.setdefault("PYO3_PYTHON", str(Path(sys.executable).resolve()))
    if target.uses_zig:
        environment["CARGO"] = "cargo-zigbuild"
        # A static C library cannot be loaded by Python's.
        environment["CARGO_ENCODED_RUSTFLAGS"] = "-Ctarget-feature=-crt-static" if "musl" in target.rust else ""
    else:
        environment["_PYTHON_HOST_PLATFORM"] = target.tag.replace("_", "-", 1)
    return environment


if __name__ == "__main__":
    sys.exit(subprocess.run(sys.argv[1:], env=environment_of(TARGETS["manylinux-x86_64"]), check=False).returncode)
