"""Capture filters: libpcap compiles the expression to BPF programs, the reader in Rust runs them."""

from __future__ import annotations

import ctypes

from pepscope.captures.opening import libpcap
from pepscope.errors import FilterError

Instruction = tuple[int, int, int, int]

#: Link type as capture files number it -> as libpcap's compiler numbers it (they differ for raw IP). For ERF, NFLOG,
#: IPOIB, PKTAP, PPP_WITH_DIR and the tags of switches (DSA_TAG) it compiles nothing.
LINK_TYPES = {
    0: 0,  # NULL
    1: 1,  # ETHERNET
    7: 7,  # ARCNET_BSD
    9: 9,  # PPP
    10: 10,  # FDDI
    12: 12,  # RAW as some systems number it
    14: 12,  # RAW on OpenBSD
    50: 50,  # PPP_HDLC
    51: 51,  # PPP_ETHER
    101: 12,  # RAW
    104: 104,  # C_HDLC
    105: 105,  # IEEE802_11
    108: 108,  # LOOP
    109: 109,  # ENC
    113: 113,  # LINUX_SLL
    117: 117,  # PFLOG
    119: 119,  # IEEE802_11_PRISM
    127: 127,  # IEEE802_11_RADIOTAP
    129: 129,  # ARCNET_LINUX
    163: 163,  # IEEE802_11_AVS
    192: 192,  # PPI
    226: 226,  # IPNET
    228: 228,  # IPV4
    229: 229,  # IPV6
    276: 276,  # LINUX_SLL2
}

_SNAP_LENGTH = 262144
_MATCHES_NOTHING = "expression rejects all packets"
_REJECT: Instruction = (0x06, 0, 0, 0)  # BPF_RET | BPF_K with length 0


def compile_filter(expression: str) -> dict[int, list[Instruction]]:
    """Compile a pcap-filter expression for every link type that we read.

    Returns link type -> BPF instructions (code, jump if true, jump if false, operand); a link type for which the
    expression has no meaning (`ether host` on raw IP) is left out. Raises FilterError where it has none on any.
    """
    if "\0" in expression:
        raise FilterError("the filter must not contain a NUL character")
    try:
        pcap = libpcap.library()
    except OSError as error:
        raise FilterError(f"--filter cannot be used: {error}") from None
    encoded = expression.encode("utf-8", "surrogateescape")  # what is no Unicode libpcap refuses
    programs: dict[int, list[Instruction]] = {}
    complaints: dict[int, str] = {}
    for link_type, compiler_number in LINK_TYPES.items():
        handle = pcap.pcap_open_dead(compiler_number, _SNAP_LENGTH)
        if not handle:
            raise FilterError("libpcap could not start its filter compiler")
        try:
            program = libpcap.Program()
            reference = ctypes.byref(program)
            if pcap.pcap_compile(handle, reference, encoded, 1, libpcap.UNKNOWN_NETMASK) != 0:
                complaint = pcap.pcap_geterr(handle).decode(errors="replace")
                complaints[link_type] = complaint
                if complaint == _MATCHES_NOTHING:
                    programs[link_type] = [_REJECT]
                continue
            try:
                programs[link_type] = [
                    (step.code, step.jt, step.jf, step.k)
                    for step in (program.bf_insns[index] for index in range(program.bf_len))
                ]
            finally:
                pcap.pcap_freecode(reference)
        finally:
            pcap.pcap_close(handle)
    if all(program == [_REJECT] for program in programs.values()):
        raise FilterError(f"the filter {expression!r} does not compile: {complaints[1]}")
    return programs
