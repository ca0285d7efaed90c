"""What continuous integration installs with: uv as pip is configured, or else pip itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

INSTALL = Path(__file__).parents[2] / ".ci" / "install"

PIP = r"""
if [ "$1" = config ]; then printf '%s\n' "${CONFIGURED[@]}"; exit; fi
echo "pip $*" >>done
[ "${*: -1}" != uv ] || exit "$UV_IS_MISSING"
"""
UV = 'echo "uv $* from ${UV_FIND_LINKS:-} ${UV_INDEX_URL:-} trusting ${SSL_CERT_FILE:-}" >>done; exit "$UV_FAILS"'


def installed(
    directory: Path, configured: str = "", has_uv: bool = True, uv_fails: int = 0, uv_is_missing: int = 0, **given: str
) -> list[str]:
    """Run the script beside stand-ins for pip, Python and uv: each call of pip and uv with its arguments, and with what
    uv reads of its environment."""
    programs = {"pip": f"CONFIGURED=({configured})\n{PIP}", "python": 'shift 2; exec "$@"'}
    if has_uv:
        programs["uv"] = UV
    (directory / ".venv" / "bin").mkdir(parents=True)
    for name, script in programs.items():
        program = directory / ".venv" / "bin" / name
        program.write_text(f"#!/usr/bin/env bash\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "SSL_"))}
    fates = {"UV_FAILS": str(uv_fails), "UV_IS_MISSING": str(uv_is_missing)}
    command = [str(INSTALL), "--editable", ".[dev]"]
    done = subprocess.run(command, cwd=directory, env=kept | fates | given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return (directory / "done").read_text(encoding="utf-8").splitlines()


WITH_UV = "uv pip install --quiet --python .venv/bin/python --editable .[dev]"
WITH_PIP = "pip install --quiet --no-compile --editable .[dev]"


@pytest.mark.parametrize(
    ("configured", "told"),
    [
        ("", "from   trusting "),
        (r'''":env:.find-links='/opt/wheels'" "global.find-links='/other'"''', "from /opt/wheels  trusting "),
        (r'''"global.find-links='\\n/opt/a\\n/opt/b'"''', "from /opt/a /opt/b  trusting "),
        (
            r'''"global.cert='/etc/ca.pem'" "install.index-url='https://mirror/simple'"''',
            "from  https://mirror/simple trusting /etc/ca.pem",
        ),
    ],
)
def test_uv_is_told_what_pip_is_configured_with(configured: str, told: str, tmp_path: Path) -> None:
    assert installed(tmp_path, configured) == [f"{WITH_UV} {told}"]


def test_settings_of_uv_itself_go_first(tmp_path: Path) -> None:
    (ran,) = installed(tmp_path, "\"global.cert='/etc/ca.pem'\"", SSL_CERT_FILE="/mine.pem")
    assert ran.endswith("trusting /mine.pem")


def test_pip_installs_where_uv_fails_or_is_not_to_be_had(tmp_path: Path) -> None:
    with_uv, with_pip = installed(tmp_path / "fails", uv_fails=1)
    assert with_uv.startswith(WITH_UV)
    assert with_pip == WITH_PIP
    asked, with_pip = installed(tmp_path / "missing", has_uv=False, uv_is_missing=1)
    assert asked == "pip install --quiet --no-compile uv"
    assert with_pip == WITH_PIP
