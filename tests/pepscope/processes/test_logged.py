"""Messages to `logging`, which is not imported for them."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from pepscope.processes.logged import log_info


def test_who_listens_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="pepscope.detect"):
        log_info("pepscope.detect", "read %s: %d", "a.pcap", 3)
    assert [(each.name, each.getMessage()) for each in caplog.records] == [("pepscope.detect", "read a.pcap: 3")]
    assert [each.funcName for each in caplog.records] == ["test_who_listens_is_told"]


def test_nobody_listens_where_logging_was_never_imported() -> None:
    program = (
        "import sys; from pepscope.processes.logged import log_info; log_info('pepscope', 'read'); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True, text=True)
    assert "logging" not in done.stdout.split()
