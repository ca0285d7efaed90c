"""The system's libpcap, by ctypes: the functions that filters and live captures use, with the types of pcap(3PCAP).

Every system with tcpdump or Wireshark has it, and macOS brings it.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from ctypes import POINTER, Structure, c_char_p, c_int, c_ubyte, c_uint, c_uint32, c_ushort, c_void_p
from ctypes.util import find_library
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

ERROR_BUFFER_BYTES = 256 + 1
PERMISSION_DENIED = -8  # PCAP_ERROR_PERM_DENIED
BROKEN_OFF = -2  # PCAP_ERROR_BREAK
UNKNOWN_NETMASK = 0xFFFFFFFF
NANOSECONDS = 1  # PCAP_TSTAMP_PRECISION_NANO

REMEDY = {
    "linux": "install the system's package (libpcap0.8 on Debian and Ubuntu, libpcap elsewhere)",
    "win32": "install Npcap, as Wireshark does",
}.get(sys.platform, "install libpcap")

#: As the loader of each system knows it: Debian's name is older than that of other Linux systems.
_NAMES = {
    "linux": ("libpcap.so.1", "libpcap.so.0.8"),
    "darwin": ("/usr/lib/libpcap.A.dylib",),
    "win32": (str(Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", "Npcap", "wpcap.dll")), "wpcap.dll"),
}.get(sys.platform, ())


class Instruction(Structure):
    """`struct bpf_insn`: code, jump if true, jump if false, operand."""

    _fields_: ClassVar = [("code", c_ushort), ("jt", c_ubyte), ("jf", c_ubyte), ("k", c_uint32)]


class Program(Structure):
    """`struct bpf_program`."""

    _fields_: ClassVar = [("bf_len", c_uint), ("bf_insns", POINTER(Instruction))]


class Statistics(Structure):
    """`struct pcap_stat`; Windows has more fields behind these."""

    _fields_: ClassVar = [
        ("received", c_uint),
        ("dropped", c_uint),
        ("interface_dropped", c_uint),
        ("_rest", c_uint * 3),
    ]


_HANDLE = _DUMPER = c_void_p
#: Result and arguments by name.
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "pcap_activate": (c_int, (_HANDLE,)),
    "pcap_breakloop": (None, (_HANDLE,)),
    "pcap_close": (None, (_HANDLE,)),
    "pcap_compile": (c_int, (_HANDLE, POINTER(Program), c_char_p, c_int, c_uint32)),
    "pcap_create": (_HANDLE, (c_char_p, c_char_p)),
    "pcap_dispatch": (c_int, (_HANDLE, c_int, c_void_p, _DUMPER)),
    "pcap_dump_close": (None, (_DUMPER,)),
    "pcap_dump_file": (c_void_p, (_DUMPER,)),
    "pcap_dump_flush": (c_int, (_DUMPER,)),
    "pcap_dump_open": (_DUMPER, (_HANDLE, c_char_p)),
    "pcap_freecode": (None, (POINTER(Program),)),
    "pcap_geterr": (c_char_p, (_HANDLE,)),
    "pcap_lib_version": (c_char_p, ()),
    "pcap_loop": (c_int, (_HANDLE, c_int, c_void_p, _DUMPER)),
    "pcap_open_dead": (_HANDLE, (c_int, c_int)),
    "pcap_set_buffer_size": (c_int, (_HANDLE, c_int)),
    "pcap_set_snaplen": (c_int, (_HANDLE, c_int)),
    "pcap_set_timeout": (c_int, (_HANDLE, c_int)),
    "pcap_set_tstamp_precision": (c_int, (_HANDLE, c_int)),
    "pcap_setfilter": (c_int, (_HANDLE, POINTER(Program))),
    "pcap_setnonblock": (c_int, (_HANDLE, c_int, c_char_p)),
    "pcap_stats": (c_int, (_HANDLE, POINTER(Statistics))),
    "pcap_statustostr": (c_char_p, (c_int,)),
}


@cache
def library() -> Any:
    """The loaded library, whose functions are those of libpcap by name. Raises OSError where the system has none."""
    for name in _NAMES:
        with suppress(OSError):
            loaded = ctypes.CDLL(name)
            break
    else:
        found = find_library("pcap")
        if found is None:
            raise OSError(f"this system has no libpcap: {REMEDY}")
        loaded = ctypes.CDLL(found)
    for name, (result, arguments) in _FUNCTIONS.items():
        try:
            function = getattr(loaded, name)
        except AttributeError:
            raise OSError(f"this system's libpcap is older than 1.5, it has no {name}: {REMEDY}") from None
        function.restype, function.argtypes = result, arguments
    return loaded
