"""What a Linux platform tag promises of an extension: which libraries it loads, and which versions of them.

auditwheel checks that only for the C library and the processor of the machine that it runs on; wheels for others are
built on one machine, too.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

#: Libraries that every Linux of the tag has, without their version: PEP 600 and PEP 656, as far as a Rust extension
#: may need them.
_GLIBC = frozenset({"libc.so", "libm.so", "libpthread.so", "libdl.so", "librt.so", "libgcc_s.so", "ld-linux"})
_MUSL = frozenset({"libc.so", "libc.musl"})


class TagError(Exception):
    """An extension needs what its wheel's tag does not promise."""


def hold_to_tag(wheel: Path, tag: str) -> None:
    """Check every extension of a wheel against a `manylinux_A_B` or `musllinux_A_B` tag.

    Raises TagError with the library or version that the tag does not have.
    """
    promised = _MUSL if tag.startswith("musllinux") else _GLIBC
    newest = tuple(int(number) for number in tag.split("_")[1:3])
    for name, extension in _extensions(wheel):
        for library in needed_libraries(extension):
            if not library.startswith(tuple(promised)):
                raise TagError(f"{wheel.name}: {name} needs {library}, which {tag} does not promise")
        for version in glibc_versions(extension):
            if promised is _MUSL or version > newest:
                raise TagError(f"{wheel.name}: {name} needs glibc {'.'.join(map(str, version))}, newer than {tag}")


def needed_libraries(extension: ELFFile) -> list[str]:
    """The libraries that the loader brings with an extension (DT_NEEDED)."""
    section = extension.get_section_by_name(".dynamic")
    if not isinstance(section, DynamicSection):
        return []
    # pyelftools names the attribute by the tag, which its types cannot say.
    return [str(each.needed) for each in section.iter_tags("DT_NEEDED")]  # type: ignore[attr-defined]


def glibc_versions(extension: ELFFile) -> list[tuple[int, ...]]:
    """The versions of glibc whose symbols an extension asks for (DT_VERNEED)."""
    section = extension.get_section_by_name(".gnu.version_r")
    if not isinstance(section, GNUVerNeedSection):
        return []
    asked = (re.fullmatch(r"GLIBC_([\d.]+)", each.name) for _, names in section.iter_versions() for each in names)
    return [tuple(int(number) for number in found[1].split(".")) for found in asked if found]


def _extensions(wheel: Path) -> Iterator[tuple[str, ELFFile]]:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".so"):
                yield name, ELFFile(io.BytesIO(archive.read(name)))
