"""What a wheel's tag promises is what its extension asks for; binutils' readelf is the oracle."""

from __future__ import annotations

import re
import subprocess
import zipfile
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

import pepscope._core
from distribution.platform_tag import TagError, glibc_versions, hold_to_tag, needed_libraries

EXTENSION = Path(pepscope._core.__file__)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    made = tmp_path / "some-1.whl"
    with zipfile.ZipFile(made, "w") as archive:
        archive.write(EXTENSION, "some/_core.abi3.so")
    return made


def readelf(option: str) -> str:
    return subprocess.run(["readelf", option, EXTENSION], capture_output=True, text=True, check=True).stdout


def test_libraries_and_versions_are_those_of_readelf() -> None:
    with EXTENSION.open("rb") as file:
        extension = ELFFile(file)
        libraries, versions = needed_libraries(extension), glibc_versions(extension)
    assert libraries == re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d"))
    found = {tuple(map(int, each.split("."))) for each in re.findall(r"Name: GLIBC_([\d.]+)", readelf("-V"))}
    assert set(versions) == found
    assert found


def test_a_tag_of_this_systems_glibc_or_a_later_one_holds(wheel: Path) -> None:
    hold_to_tag(wheel, "manylinux_2_99_x86_64")


def test_a_tag_of_an_older_glibc_is_refused(wheel: Path) -> None:
    with pytest.raises(TagError, match=r"some-1\.whl: some/_core\.abi3\.so needs glibc [\d.]+, newer than"):
        hold_to_tag(wheel, "manylinux_2_1_x86_64")


def test_musl_has_no_library_of_glibc(wheel: Path) -> None:
    with pytest.raises(TagError, match=r"which musllinux_1_2_x86_64 does not promise|needs glibc"):
        hold_to_tag(wheel, "musllinux_1_2_x86_64")
