"""Score `pepscope check` on paths between real kernels (root, Linux).

`python -m benchmarks.check_campaign.paths --runs 400 --seed 1`

Each run puts one kind of box, or none, on a drawn router of a path of six hops (`tests/prober/check/chain.py`) and
checks two ports of three hosts. A false alarm is a port called split that is not; found is a split called split.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from detector.corpora.validation.intervals import Share
from tests.prober.check.chain import HOSTS, HOSTS_6, PLAIN, ROUTERS, TLS, chain

if TYPE_CHECKING:
    from tests.prober.check.chain import Chain

#: Routers at which a split is no host's own: the last one is where hosts keep their load balancers.
_LAST_PLACE = ROUTERS - 2


@dataclass(frozen=True, slots=True)
class Kind:
    """What is put on the path; `split` are the ports, by version of IP, that it splits."""

    put: Callable[[Chain, random.Random], None]
    split: frozenset[tuple[int, int]] = frozenset()


BOTH = frozenset({(4, PLAIN), (4, TLS)})


def _box(mode: str, ports: tuple[int, ...], *programs: str) -> Callable[[Chain, random.Random], None]:
    return lambda path, chance: path.box(chance.randint(1, _LAST_PLACE), mode, ports, programs or ("iptables",))


def _rule(table: str, where: str, *words: str) -> Callable[[Chain, random.Random], None]:
    return lambda path, chance: path.rule(chance.randint(1, ROUTERS), "iptables", table, where, *words)


def _nothing(path: Chain, chance: random.Random) -> None:
    del path, chance


def _on_this_host(path: Chain, chance: random.Random) -> None:
    del chance
    path.box(0, "split", (PLAIN,))


def _before_the_hosts(path: Chain, chance: random.Random) -> None:
    del chance
    path.box(ROUTERS, "split", (PLAIN, TLS), before="10.88.0.0/24")


def _syn_proxy(path: Chain, chance: random.Random) -> None:
    path.syn_proxy(chance.randint(1, _LAST_PLACE), PLAIN)


def _silent(path: Chain, chance: random.Random) -> None:
    for place in chance.sample(range(1, ROUTERS + 1), chance.randint(1, ROUTERS)):
        path.rule(place, "iptables", "filter", "OUTPUT", "-p", "icmp", "-j", "DROP")


def _lossy(path: Chain, chance: random.Random) -> None:
    share = f"{chance.uniform(0.005, 0.05):.3f}"
    path.rule(chance.randint(1, ROUTERS), "iptables", "filter", "FORWARD", "-m", "statistic", "--mode", "random",
              "--probability", share, "-j", "DROP")  # fmt: skip


def _lossy_split(path: Chain, chance: random.Random) -> None:
    _lossy(path, chance)
    path.box(chance.randint(1, _LAST_PLACE), "split", (PLAIN, TLS))


_SAYINGS = ("split-tcp", "regular", "inconclusive")
_TCP = ("-p", "tcp")
KINDS = {
    "nothing": Kind(_nothing),
    "address translation": Kind(_rule("nat", "POSTROUTING", "-o", "far", "-j", "MASQUERADE")),
    "smaller segments": Kind(
        _rule("mangle", "FORWARD", *_TCP, "--tcp-flags", "SYN,RST", "SYN", "-j", "TCPMSS", "--set-mss", "1300")
    ),
    "lost packets": Kind(_lossy),
    "silent routers": Kind(_silent),
    "no datagrams": Kind(_rule("filter", "FORWARD", "-p", "udp", "-j", "DROP")),
    "a port that is refused": Kind(
        _rule("filter", "FORWARD", *_TCP, "--dport", str(TLS), "-j", "REJECT", "--reject-with", "tcp-reset")
    ),
    "a port without answer": Kind(_rule("filter", "FORWARD", *_TCP, "--dport", str(TLS), "-j", "DROP")),
    "a SYN proxy": Kind(_syn_proxy),
    "a captive portal": Kind(_box("portal", (PLAIN,))),
    "a program on this host": Kind(_on_this_host),
    "a balancer before the hosts": Kind(_before_the_hosts),
    "a split": Kind(_box("split", (PLAIN, TLS)), BOTH),
    "a split of one port": Kind(_box("split", (PLAIN,)), frozenset({(4, PLAIN)})),
    "a split of IPv6": Kind(_box("split", (PLAIN,), "ip6tables"), frozenset({(6, PLAIN)})),
    "a box that accepts and fails": Kind(_box("shut", (TLS,)), frozenset({(4, TLS)})),
    "a split and lost packets": Kind(_lossy_split, BOTH),
}


def main() -> int:
    """Print the table; 1 where anything was called split that is not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=170)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=6)
    options = parser.parse_args()
    begun = time.monotonic()
    counts: Counter[tuple[str, bool, str]] = Counter()
    shares = [range(first, options.runs, options.at_once) for first in range(options.at_once)]
    with ProcessPoolExecutor(options.at_once) as pool:
        for found in pool.map(_series, shares, [options.seed] * len(shares)):
            counts += found
    _print(counts)
    print(f"{options.runs} runs in {time.monotonic() - begun:.0f} s", file=sys.stderr)
    return 1 if any(count for (_, split, said), count in counts.items() if not split and said == "split-tcp") else 0


def _series(numbers: range, seed: int) -> Counter[tuple[str, bool, str]]:
    """Verdicts of some runs, one after the other on one path, by kind and truth."""
    counts: Counter[tuple[str, bool, str]] = Counter()
    names = list(KINDS)
    with tempfile.TemporaryDirectory(prefix="pepscope-check-") as scratch, chain() as path:
        targets = Path(scratch) / "targets.txt"
        for number in numbers:
            chance = random.Random(f"{seed}/{number}")
            name = names[number % len(names)]
            hosts = HOSTS_6 if "IPv6" in name else ()
            targets.write_text(
                "".join(f"{host} {PLAIN} plain\n" for host in (*HOSTS, *hosts))
                + "".join(f"{host} {TLS} tls\n" for host in HOSTS)
            )
            try:
                KINDS[name].put(path, chance)
                said = path.check(targets)
            finally:
                path.stack.close()
            for port in said["ports"]:
                counts[name, (port["family"], port["port"]) in KINDS[name].split, port["verdict"]] += 1
    return counts


def _print(counts: Counter[tuple[str, bool, str]]) -> None:
    print("| path | ports split | called split | called regular | inconclusive | ports not split | called split "
          "| called regular | inconclusive |\n|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for name in KINDS:
        rows = [[counts[name, truth, said] for said in _SAYINGS] for truth in (True, False)]
        print(f"| {name} | {' | '.join(f'{sum(row)} | ' + ' | '.join(map(str, row)) for row in rows)} |")
    for truth, what in ((True, "splits found"), (False, "false alarms")):
        of = sum(count for (_, split, _), count in counts.items() if split is truth)
        said = sum(count for (_, split, verdict), count in counts.items() if split is truth and verdict == "split-tcp")
        print(f"\n{what}: {Share(said, of)}")


if __name__ == "__main__":
    sys.exit(main())
