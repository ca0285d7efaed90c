"""What is built for users: an abi3 wheel in release mode, an sdist that builds, names that belong to us alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import distributions, entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: A debug build of the extension is several times as large as any release build.
LARGEST_RELEASE_BYTES = 40_000_000

#: Top-level packages: folders of the repository that are packages and no tests.
ROOMS = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "benchmarks"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel that was built from it."""
    target = tmp_path_factory.mktemp("dist")
    environment = {
        **os.environ,
        "SETUPTOOLS_RUST_CARGO_PROFILE": "release",
        # The sources are unpacked elsewhere; compiled dependencies are shared with the tree.
        "CARGO_TARGET_DIR": str(ROOT / "target" / "packaging"),
        # Not the speed of the wheel is tested: link-time optimisation takes minutes, and the tree's extension has it.
        "CARGO_PROFILE_RELEASE_LTO": "off",
        "CARGO_PROFILE_RELEASE_OPT_LEVEL": "0",
        "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
        "CARGO_PROFILE_RELEASE_DEBUG": "0",
    }
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", target, ROOT],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return target


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def test_wheel_is_abi3_with_the_extension(built: Path) -> None:
    wheel = only(built, "*.whl")
    assert "-cp311-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        assert "pepscope/_core.abi3.so" in names
        assert archive.getinfo("pepscope/_core.abi3.so").file_size < LARGEST_RELEASE_BYTES
    assert {"pepscope/_core.pyi", "pepscope/py.typed"} <= names
    assert {"pepscope/schemas/detect-2.json", "pepscope/schemas/inspect-1.json"} <= names
    assert {name.split("/")[0] for name in names} - ROOMS == {
        name.split("/")[0] for name in names if ".dist-info/" in name
    }


def test_wheel_holds_every_module_and_asset(built: Path) -> None:
    with zipfile.ZipFile(only(built, "*.whl")) as archive:
        names = set(archive.namelist())
    suffixes = {".py", ".pyi", ".json", ".toml", ".js", ".css", ".html"}
    for room in ROOMS:
        files = [path for path in (ROOT / room).rglob("*") if path.is_file() and path.suffix in suffixes]
        assert files, room
        assert {path.relative_to(ROOT).as_posix() for path in files} <= names


def test_sdist_has_the_rust_sources_and_no_build_output(built: Path) -> None:
    with tarfile.open(only(built, "*.tar.gz")) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"Cargo.toml", "Cargo.lock", "crates/bindings/src/lib.rs", "crates/wire/src/lib.rs", "LICENSE"} <= names
    assert not any(name.startswith(("target/", ".venv/", "build/")) or name.endswith(".so") for name in names)


def test_wheel_runs_away_from_the_tree(built: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", site, only(built, "*.whl")], check=True
    )
    program = (
        "import pepscope, sys;"
        "from pepscope import _core;"
        "opened = pepscope.inspect(sys.argv[1]);"
        "print(pepscope.__file__, len(opened.connections), opened.packets(0).time_ns.dtype, _core.is_release_build)"
    )
    capture = ROOT / "examples" / "regular" / "server.pcap.gz"
    done = subprocess.run(
        [sys.executable, "-c", program, str(capture)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(site / "pepscope" / "__init__.py"), "1", "int64", "True"]


def test_extension_in_use_is_a_release_build() -> None:
    from pepscope import _core

    assert Path(str(_core.__file__)).stat().st_size < LARGEST_RELEASE_BYTES
    assert _core.is_release_build


def test_top_level_names_are_ours_alone() -> None:
    for distribution in distributions():
        if distribution.metadata["Name"] == "pepscope":
            continue
        for file in distribution.files or ():
            first = file.parts[0].removesuffix(".py")
            assert first not in ROOMS, f"{distribution.metadata['Name']} installs {file}"


@pytest.mark.parametrize("group", ["pepscope.commands", "pepscope.writers", "pepscope.api"])
def test_entry_points_load(group: str) -> None:
    entries = entry_points(group=group)
    assert entries
    for entry in entries:
        assert callable(entry.load()), entry


def test_versions_agree() -> None:
    import pepscope
    from pepscope import _core

    (ours,) = {one.version for one in distributions() if one.metadata["Name"] == "pepscope"}
    assert ours == pepscope.__version__ == _core.__version__
