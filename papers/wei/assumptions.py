"""Parameters that Wei et al. do not give, and the effect of other values."""

from __future__ import annotations

import pandas as pd

from papers.experiment import Measurements
from papers.results import Assumption
from papers.statements.comparing import written
from papers.wei.reading import CampaignRuns

#: Name of the runs whose split point connects to the server first, beside the others.
_SERVER_FIRST = "wei-split-server-first"


def assumptions(measurements: Measurements) -> tuple[Assumption, ...]:
    """Each with what it does to the gains for 5 and 50 kB on the west coast."""
    later = measurements["wei-opening"].runs.assign(scenario=_SERVER_FIRST)
    campaign = CampaignRuns(pd.concat([measurements["wei-choices"].runs, later], ignore_index=True))

    def effect(name: str) -> str:
        return f"{name}: " + ", ".join(
            f"{written(campaign.gain(name, size), '%', 2)} ({size // 1000} kB)" for size in (5_000, 50_000)
        )

    def from_the_syn(scenario: str) -> str:
        gains = (campaign.gain("as chosen", size, "whole_bit_s", scenario) for size in (1_000, 5_000))
        return " and ".join(written(gain, "%", 2) for gain in gains)

    chosen = effect("as chosen")
    return (
        Assumption(
            "Initial windows",
            "Those of Linux (RedHat 9.0) and of an unknown split point, which may be larger.",
            "Three segments at the server; nine, r2 v, at the split point, which so skips slow start downstream.",
            "RFC 3390, which the paper cites, gives three segments of 1460 bytes; r2 v is the paper's first "
            "assumption.",
            f"{chosen}; {effect('server starts with 1')}; {effect('server starts with 10')}; three segments at the "
            "split point: see table II.",
        ),
        Assumption(
            "What varies from one download to the next",
            "At least 100 repetitions at night; nothing on how the rate varies.",
            "The rate is drawn anew each second, uniformly within 25 % of 128 kbit/s.",
            "Something must vary for an interval to mean anything; the mean is the paper's v.",
            f"{chosen}; {effect('constant rate')}; {effect('rate within 50 %')}.",
        ),
        Assumption(
            "Distance of the east coast",
            "Both servers on the west coast, clients on either; no round trip but r1 = 0.03 s of the example.",
            "r1 = 30 ms west, 100 ms east.",
            "Some 4,500 km of fibre are 45 ms one way with the detours of its route.",
            "The closed form grows in proportion to r1; see its figure.",
        ),
        Assumption(
            "Acknowledgements of the mobile",
            "Windows XP.",
            "The first 16 at once, then every second segment within 40 ms.",
            "The scenario's receiver; Windows XP delays up to 200 ms from the start.",
            f"{chosen}; {effect('mobile delays acknowledgements')}.",
        ),
        Assumption(
            "When throughput begins to count",
            "Average throughput of FTP, which takes a second connection for each file.",
            "From the mobile's open connection to its last byte; from its SYN in a column of the table.",
            "FTP clients time the data connection once it stands: the published 18 kbit/s for 1 kB are 0.44 s, about "
            "half of one round trip.",
            "See the last column of table II.",
        ),
        Assumption(
            "When the split point accepts a connection",
            "Nothing.",
            "At once; its own connection to the server follows.",
            "So transparent proxies do that must see a request before they know what to do with it.",
            f"Counted from the mobile's SYN, 1 and 5 kB gain {from_the_syn('wei-split')}; where the split point asks "
            f"the server first, {from_the_syn(_SERVER_FIRST)}.",
        ),
        Assumption(
            "Queue of the radio link",
            "Nothing.",
            "40 packets.",
            "More than the receive window of 64 kB, so that nothing is dropped, as in the published traces of regular "
            "TCP with delays of a few seconds.",
            f"{chosen}; {effect('queue of 10')}.",
        ),
    )
