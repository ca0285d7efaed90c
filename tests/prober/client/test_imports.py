"""What loading the mobile's end brings along."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import prober.client

SCIENTIFIC = ("numpy", "pandas", "scipy")


def test_client_loads_no_scientific_package():
    names = [item.name for item in pkgutil.walk_packages(prober.client.__path__, "prober.client.")]
    assert "prober.client.mobile_end" in names
    assert "prober.client.applications.ftp" in names
    check = f"import sys, {', '.join(names)}; sys.exit(','.join({{*{SCIENTIFIC!r}}} & set(sys.modules)) or 0)"
    done = subprocess.run(
        [sys.executable, "-c", check],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
