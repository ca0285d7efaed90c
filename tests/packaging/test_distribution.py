"""What is built for users: an abi3 wheel in release mode, an sdist that builds, names that belong to us alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from importlib.metadata import distributions, entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: A debug build of the extension is several times as large as any release build.
LARGEST_RELEASE_BYTES = 40_000_000

#: docs/decisions/032-small-installation.md.
LARGEST_INSTALLATION_BYTES = 100_000_000
#: What packs the client that needs Python alone: in the source distribution only.
LEAN = "prober/lean/"

#: Top-level packages: folders of the repository that are packages and no tests.
ROOMS = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "benchmarks"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel that was built from it."""
    target = tmp_path_factory.mktemp("dist")
    # What the environment says goes first: continuous integration compiles the extension once for itself and the wheel.
    environment = {
        "SETUPTOOLS_RUST_CARGO_PROFILE": "release",
        # The sources are unpacked elsewhere; compiled dependencies are shared with the tree.
        "CARGO_TARGET_DIR": str(ROOT / "target" / "packaging"),
        # Not the speed of the wheel is tested, and optimising it takes minutes.
        "CARGO_PROFILE_RELEASE_LTO": "off",
        "CARGO_PROFILE_RELEASE_OPT_LEVEL": "0",
        "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
        "CARGO_PROFILE_RELEASE_DEBUG": "0",
        **os.environ,
    }
    sources = tmp_path_factory.mktemp("sources")
    run([sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", target, ROOT], environment)
    with tarfile.open(only(target, "*.tar.gz")) as archive:
        archive.extractall(sources, filter="data")
    (unpacked,) = sources.iterdir()
    run([sys.executable, "-m", "distribution.build_wheel", "--outdir", target], environment, unpacked)
    return target


def run(command: Sequence[object], environment: dict[str, str], cwd: Path = ROOT) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def test_wheel_is_abi3_with_the_extension(built: Path) -> None:
    wheel = only(built, "*.whl")
    assert wheel.name.endswith("-cp311-abi3-manylinux_2_28_x86_64.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        assert "pepscope/_core.abi3.so" in names
        assert archive.getinfo("pepscope/_core.abi3.so").file_size < LARGEST_RELEASE_BYTES
    assert {"pepscope/_core.pyi", "pepscope/py.typed"} <= names
    assert {"pepscope/schemas/detect-2.json", "pepscope/schemas/inspect-1.json"} <= names
    assert {name.split("/")[0] for name in names} - ROOMS == {
        name.split("/")[0] for name in names if ".dist-info/" in name
    }


def test_auditwheel_finds_the_wheel_as_old_as_its_tag(built: Path) -> None:
    shown = run([sys.executable, "-m", "auditwheel", "show", only(built, "*.whl")], dict(os.environ))
    found = re.search(r'platform tag: "manylinux_2_(\d+)_x86_64"', " ".join(shown.split()))
    assert found is not None, shown
    assert int(found[1]) <= 28


def test_wheel_holds_every_module_and_asset(built: Path) -> None:
    with zipfile.ZipFile(only(built, "*.whl")) as archive:
        names = set(archive.namelist())
    suffixes = {".py", ".pyi", ".json", ".toml", ".js", ".css", ".html"}
    for room in ROOMS:
        files = [path for path in (ROOT / room).rglob("*") if path.is_file() and path.suffix in suffixes]
        assert files, room
        wanted = {path.relative_to(ROOT).as_posix() for path in files}
        assert {name for name in wanted if not name.startswith(LEAN)} <= names
    assert not any(name.startswith(LEAN) for name in names)


def test_sdist_has_the_rust_sources_and_no_build_output(built: Path) -> None:
    with tarfile.open(only(built, "*.tar.gz")) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"Cargo.toml", "Cargo.lock", "crates/bindings/src/lib.rs", "crates/wire/src/lib.rs", "LICENSE"} <= names
    assert {f"{LEAN}packing.py", f"{LEAN}msgspec_subset/__init__.py"} <= names
    assert not any(name.startswith(("target/", ".venv/", "build/")) or name.endswith(".so") for name in names)


@pytest.fixture(scope="module")
def clean(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own with the wheel and what it requires, installed without a compiler."""
    place = tmp_path_factory.mktemp("clean") / "venv"
    run([sys.executable, "-m", "venv", place], dict(os.environ))
    pip = [place / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    run([*pip, only(built, "*.whl")], {**no_compiler(place), **pip_settings()})
    return place


def no_compiler(place: Path) -> dict[str, str]:
    """An environment in which there are no programs but those of a virtual environment."""
    return {"PATH": str(place / "bin"), "HOME": str(place)}


def pip_settings() -> dict[str, str]:
    """Where packages come from is the machine's affair."""
    return {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name.endswith("_proxy")}


def test_wheel_judges_the_examples_in_a_clean_environment(clean: Path, tmp_path: Path) -> None:
    pepscope, environment = clean / "bin" / "pepscope", no_compiler(clean)
    for name, verdict in (("split", "split-tcp"), ("regular", "regular")):
        captures = sorted((ROOT / "examples" / name).glob("*.pcap.gz"))
        assert len(captures) == 2
        judged = json.loads(run([pepscope, "detect", *captures, "--json"], environment))
        assert [pair["verdict"] for pair in judged["pairs"]] == [verdict]
    verdicts = tmp_path / "verdict.json"
    verdicts.write_text(json.dumps(judged))
    assert "end to end" in run([pepscope, "explain", verdicts], environment)
    assert "1 TCP connection" in run([pepscope, "inspect", captures[0]], environment)
    diagnosed = json.loads(run([pepscope, "doctor", "--json"], environment))
    commands = {command["name"]: command["availability"] for command in diagnosed["commands"]}
    assert commands["detect"] == "partial"
    assert commands["audit-captures"] == "unavailable"


def test_debian_package_judges_the_examples_where_it_is_unpacked(built: Path, tmp_path: Path) -> None:
    maker = [sys.executable, ROOT / "distribution" / "build_deb.py", only(built, "*.whl"), "--outdir", tmp_path]
    run(maker, {**os.environ, "PYTHONPATH": str(ROOT)})
    package, root = only(tmp_path, "*.deb"), tmp_path / "root"
    assert run(["dpkg-deb", "--field", package, "Package"], dict(os.environ)) == "pepscope\n"
    run(["dpkg-deb", "--extract", package, root], dict(os.environ))
    for place in ("bin/pepscope", "share/man/man1/pepscope-detect.1", "share/bash-completion/completions/pepscope"):
        assert (root / "usr" / place).stat().st_size > 0
    captures = sorted((ROOT / "examples" / "split").glob("*.pcap.gz"))
    program = [sys.executable, "-c", "from pepscope.cli import main; main()", "detect", *captures]
    environment = {"PATH": "/nowhere", "PYTHONPATH": str(root / "usr" / "lib" / "pepscope")}
    assert "1 connection: 1 split-tcp" in run(program, environment, tmp_path)


def test_installation_is_small(clean: Path, tmp_path: Path) -> None:
    """With the extension in use, without symbols as in wheels: the wheel's own is not optimised here."""
    from pepscope import _core

    run(["strip", "-o", tmp_path / "_core.so", _core.__file__], dict(os.environ))
    ours = [path for path in clean.rglob("*") if path.is_file() and not path.is_symlink()]
    without_installer = [path for path in ours if not any(map(_is_installers, path.parts))]
    assert len(without_installer) > 1000
    (extension,) = [path for path in without_installer if path.match("pepscope/_core.abi3.so")]
    counted = [path for path in without_installer if path != extension] + [tmp_path / "_core.so"]
    assert sum(path.stat().st_size for path in counted) < LARGEST_INSTALLATION_BYTES


def _is_installers(part: str) -> bool:
    """Whether a file or directory is pip's or setuptools', which an environment begins with."""
    name = part.partition("-")[0]
    return name in {"pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils"}


def test_wheel_is_built_in_release_mode(clean: Path) -> None:
    program = "import pepscope; from pepscope import _core; print(pepscope.__file__, _core.is_release_build)"
    shown = run([clean / "bin" / "python", "-c", program], no_compiler(clean), clean).split()
    assert shown[0].startswith(str(clean))
    assert shown[1] == "True"


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
