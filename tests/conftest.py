"""What holds for all tests."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.cases import left_out

TESTS = Path(__file__).parent

# A shell that starts the tests in the background has them ignore SIGINT, and `nohup` SIGHUP, as would all they start.
for number, action in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, action)

# Hundreds of processes that tests start, and every worker, would compile the same modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Where NumPy or SciPy is imported, OpenBLAS starts a thread for each processor, which looks for work for 25 ms.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# How long an example takes says how busy the machine is, nothing of what is tested. Two runs of one commit have the
# same examples, so that a failure is the change's; PEPSCOPE_SEARCH=1 looks for new ones. Hypothesis also draws numbers
# and texts that stand in the modules of the project that happen to be loaded: a test would have other examples beside
# others than alone.
settings.register_profile(
    "repeatable", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, max_examples=30
)
settings.register_profile("search", settings.get_profile("repeatable"), derandomize=False, max_examples=100)
if os.environ.get("PEPSCOPE_SEARCH"):
    settings.load_profile("search")
else:
    settings.load_profile("repeatable")
    pytest.MonkeyPatch().setattr("hypothesis.internal.conjecture.providers.is_local_module_file", lambda path: False)

#: Files that take longest: one that began last would run alone at the end. Workers begin with them, with those that
#: compute and those that mostly wait in turns, so that processors have work meanwhile.
LONGEST_FIRST = (
    "packaging/test_distribution.py",
    "prober/check/test_paths.py",
    "reference_sim/test_extending.py",
    "prober/check/test_delays.py",
    "papers/test_hu_and_wei.py",
    "pepscope/processes/test_cluster.py",
    "detector/corpora/test_bad_input.py",
    "oracles/test_corpus_agrees.py",
    "end_to_end/audits/test_providers.py",
    "prober/experiments/live_path/test_end_to_end.py",
    "fresh/test_fresh_captures.py",
    "prober/experiments/live_path/test_split.py",
    "prober/experiments/live_path/test_intermediaries.py",
    "prober/anonymise/test_sharing.py",
    "end_to_end/test_proxies_on_live_paths.py",
    "end_to_end/test_reference_proxy.py",
    "detector/one_capture/test_changed_captures.py",
    "end_to_end/audits/test_no_split.py",
    "end_to_end/audits/test_other_proxies.py",
    "metamorphic/test_changes.py",
    "prober/experiments/live_path/test_local_acknowledgement.py",
    "prober/experiments/live_path/test_firewalls.py",
    "metamorphic/test_slice.py",
    "prober/run/test_interrupted_runs.py",
    "prober/run/test_path_away.py",
    "detector/test_detect_command.py",
    "prober/commands/test_tutorial.py",
    "end_to_end/audits/test_own_proxies.py",
    "papers/test_ren_lin.py",
    "papers/test_jersey.py",
    "end_to_end/test_audit.py",
    "end_to_end/test_emulate.py",
    "reports/test_page.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """Have pytest-xdist keep the order; otherwise it starts files with many tests first, however short these are."""
    if config.getoption("loadscopereorder", False):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out repeated cases; sort `LONGEST_FIRST` to the front, where a name that is no file stops the run."""
    repeated = left_out(items, config.args)
    items[:] = [item for item in items if item not in repeated]
    config.hook.pytest_deselected(items=[*repeated])
    ranks = {TESTS / file: rank for rank, file in enumerate(LONGEST_FIRST)}
    if missing := [str(path) for path in ranks if not path.is_file()]:
        raise pytest.UsageError(f"LONGEST_FIRST must name files of {TESTS}, got {', '.join(missing)}")
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Three a processor: most tests wait, for paths with delays and for processes, and none minds a busy machine."""
    return 3 * len(os.sched_getaffinity(0))
