"""Parameters that Hu's paper and slides do not give, or give twice, and the effect of other values."""

from __future__ import annotations

from papers.experiment import Measurements
from papers.hu.reading import Files
from papers.results import Assumption
from papers.statements.comparing import written
from reference_sim.intervals import mean_interval


def assumptions(measurements: Measurements) -> tuple[Assumption, ...]:
    """Each with what it does to the gains at 256 kbit/s, windows 3 and 10, 50 kB."""
    separate = Files(measurements["hu-separate-choices"].runs)

    def effect(name: str) -> str:
        gains = [
            written(mean_interval(separate.gains(f"split {window}: {name}", f"regular: {name}", size=50_000)), "%", 2)
            for window in (3, 10)
        ]
        return f"{gains[0]} (window 3), {gains[1]} (window 10)"

    chosen = f"as chosen {effect('as chosen')}"
    files = Files(measurements["hu-far-radio"].runs)
    far_gains = [written(mean_interval(files.gains(f"split {window}")), "%", 2) for window in (3, 10)]
    far = f"{far_gains[0]} (window 3), {far_gains[1]} (window 10)"
    return (
        Assumption(
            "Parameter set of the comparison",
            "Two tables that differ in segment size, initial window, delay, Internet loss and prohibit time; section 5 "
            "says table 1, the slides on the proxy the other one.",
            "The second table for statements about the proxy, the first for those without; the headline under both.",
            "The slides give the second table for the comparison with and without a proxy, the first for the rest.",
            f"{chosen}; delay of 100 ms: {effect('100 ms')}; no Internet loss: {effect('no Internet loss')}; "
            f"server starting with one segment: {effect('server starts with 1')}, "
            f"with ten: {effect('server starts with 10')}.",
        ),
        Assumption(
            "Round trip of the radio link",
            "80 ms of RLC in the second table, nothing in the first; the slides speak of a delay of 500 ms.",
            "80 ms with the second table, 50 ms with the first.",
            "The second table's own value; less than the prohibit time in the first.",
            f"{chosen}; first table with 0.4 s, a connection for each file, 0.1 % of Internet loss: {far}.",
        ),
        Assumption(
            "File of the headline",
            "Files of 50, 100 or 200 kB; the headline names none.",
            "50 kB, the file of the second table; all three are shown.",
            "It is the file of the table to which proxy windows of 3 to 10 belong.",
            "See the table of gains.",
        ),
        Assumption(
            "Congestion window after thought",
            "Nothing.",
            "Starts anew from the initial window after an idle timeout (RFC 5681, section 4.1); ssthresh is kept.",
            "RFC 5681 recommends it; the files come on one connection, as HTTP/1.1 keeps it.",
            f"{chosen}; window kept: {effect('windows kept over think time')}. A connection for each file is the "
            "experiment 'ftp'.",
        ),
        Assumption(
            "Acknowledgements",
            "Nothing.",
            "One for each segment at all ends.",
            "The paper mentions the first segment's local ACK and of windows that double each round trip.",
            f"{chosen}; one for two segments at the mobile: {effect('delayed acknowledgements')}.",
        ),
        Assumption(
            "Loss of the last PDU",
            "No polling, which leaves a lost last PDU undetected.",
            "A periodic report counts against PDUs sent more than a round trip before it.",
            "Without it every file could end with TCP's timeout, which no RLC in use does (docs/models/umts_dch.md).",
            f"{chosen}; without the rule: {effect('no rule for the last PDU')}.",
        ),
        Assumption(
            "Buffer of the proxy",
            "Nothing.",
            "64 kB of contents, and a receive window of 64 kB towards the server.",
            "Twice the mobile's window of 32 kB; larger than a file of 50 kB.",
            f"{chosen}; 16 kB: {effect('buffer 16 kB')}.",
        ),
    )
