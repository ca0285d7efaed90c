"""Whole audits on a live path: `pepscope probe serve` at one end, `pepscope audit` at the other, and a middle."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPTS = sysconfig.get_path("scripts")
SERVER_ADDRESS = "203.0.113.10"
MIDDLE_ADDRESS = "10.44.0.2"
CELL_DEVICE = "pepscope-cell"
PROVIDERS = Path(__file__).parents[3] / "examples" / "providers"

#: Web objects, copies of them and requests that a proxy may change.
HTTP_PLAN = """
applications = ["http-data", "tcp"]
[experiments.transfers]
sizes_bytes = [800_000]
upload_share = 0.5
repeats = 1
[experiments.cache]
[experiments.odd-requests]
"""

SERVER = "exec pepscope probe serve --state state --log-format json >server.txt 2>server.log\n"

MOBILE = """
until grep -q MOBILE server.txt; do sleep 0.1; done
until [ -e middle-ready ]; do sleep 0.1; done
export PEPSCOPE_PROBE_KEY=$(sed -n 's/^KEY //p' server.txt)
pepscope audit plan.toml --server $PEPSCOPE_SERVER -o runs --json >audit.json
kill $(jobs -p) || true
"""


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit said."""

    run: Mapping[str, Any]

    def verdict(self, application: str, direction: str = "down") -> str:
        """Of one cell."""
        return str(self._cell(application, direction)["verdict"])

    def reason(self, application: str, direction: str = "down") -> str:
        """Of one cell's verdict."""
        return str(self._cell(application, direction)["reason"])

    def is_split(self, application: str, direction: str) -> bool:
        """Whether an application's connections are split, by either sort of proxy."""
        return self.verdict(application, direction) in ("split-tcp", "tcp-proxy")

    @property
    def verdicts(self) -> dict[tuple[str, str], str]:
        """Of all cells."""
        return {(cell["application"], cell["direction"]): cell["verdict"] for cell in self.run["cells"]}

    def connections(self, application: str, direction: str = "down") -> list[Mapping[str, Any]]:
        """What a cell was judged by."""
        return list(self._cell(application, direction)["connections"])

    def findings(self, application: str, direction: str = "down") -> set[str]:
        """What the active experiments found in a cell."""
        return {evidence["finding"] for evidence in self._cell(application, direction)["evidence"]}

    def _cell(self, application: str, direction: str) -> Mapping[str, Any]:
        cells = self.run["cells"]
        (found,) = [cell for cell in cells if (cell["application"], cell["direction"]) == (application, direction)]
        return dict(found)


def audit(directory: Path, plan: str, middle: str = "", mobile: str = "", timeout_s: float = 900.0) -> Audit:
    """Run a plan with a shell script in the middle, which makes the file `middle-ready` once it stands.

    Scripts run in `directory`, as root in network namespaces of their own. Without one the middle only routes.
    `mobile` runs on the mobile before the audit; what it leaves in the background ends with it.
    """
    scripts = {
        "path.toml": (PROVIDERS / "path.toml").read_text(),
        "plan.toml": plan,
        "server.sh": SERVER,
        "mobile.sh": mobile + MOBILE,
    }
    scripts |= {"middle.sh": middle} if middle else {"middle-ready": ""}
    for name, text in scripts.items():
        (directory / name).write_text(text)
    command = ["pepscope", "emulate", "path.toml", "--middle", "1", "--server-command", "sh server.sh"]
    command += ["--middle-command", "bash middle.sh"] if middle else []
    done = subprocess.run(
        [*command, "--", "bash", "-e", "mobile.sh"],
        cwd=directory,
        env={**os.environ, "PATH": f"{SCRIPTS}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    reported = (directory / "audit.json").read_text() if (directory / "audit.json").exists() else ""
    logs = "".join(f"{path.name}: {path.read_text()[-2000:]}\n" for path in directory.glob("*.log"))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{logs}"
    return Audit(json.loads(reported)["runs"][-1])


def audit_of_provider(directory: Path, provider: str, plan: Path, timeout_s: float = 900.0) -> Audit:
    """One of the providers of Table I, as its page says."""
    done = subprocess.run(
        ["bash", str(PROVIDERS / "audit.sh"), provider, str(directory), str(plan)],
        env={**os.environ, "PATH": f"{SCRIPTS}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "APPLICATION" in done.stdout
    return Audit(json.loads((directory / "audit.json").read_text())["runs"][-1])


def redirected(command: str, port: int) -> str:
    """A middle with a third party's proxy, which gets connections to port 80."""
    rule = f"iptables -t nat -A PREROUTING -i {CELL_DEVICE} -p tcp --dport 80 -j REDIRECT --to-ports {port}"
    listening = f"until ss -Hltn 'sport = :{port}' | grep -q .; do sleep 0.1; done"
    return "\n".join([rule, f"{command} >proxy.log 2>&1 &", listening, "touch middle-ready", "wait", ""])
