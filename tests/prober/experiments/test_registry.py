"""Experiments of other packages, found by entry point in what is installed."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pepscope.captures.direction import Direction
from pepscope.results.verdicts import Verdict
from prober.archive.archive_file import open_archive
from prober.audit.judging import judge_run
from prober.commands.default_plan import default_plan
from prober.errors import PlanError
from prober.experiments.registry import BUILT_IN, GROUP, experiment, experiments, offering_package
from prober.measurement.experiment import Experiment
from prober.measurement.task import Measurement, Observation, Status
from prober.plan import Plan
from prober.protocol.application import Application
from prober.run.runner import planned_tasks
from tests.prober.corpus_archives import archive, observation

ROOT = Path(__file__).parents[3]

SOURCE = """
from collections.abc import Iterable, Sequence

from pepscope.results.verdicts import Evidence, Outcome
from pepscope.strict_reading import Table, WholeNumber
from prober.client.mobile_end import MobileEnd
from prober.measurement.experiment import Experiment, ObservedTask, Scope
from prober.measurement.measured import Measured
from prober.measurement.task import Measurement, Task


class GreetingOptions(Table, frozen=True):
    repeats: WholeNumber = 2


class GreetingMeasured(Measured, frozen=True, kw_only=True):
    greeting: str


class Greeting(Experiment[GreetingOptions, GreetingMeasured]):
    name = "greeting"
    title = "greetings of the server"
    summary = "Connect, and keep how the server greets."
    options = GreetingOptions
    measured = GreetingMeasured

    def tasks(self, options: GreetingOptions, scope: Scope) -> Iterable[Task]:
        for repeat in range(1, options.repeats + 1):
            yield Task(self.name, repeat, scope.applications[0], scope.directions[0])

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        return Measurement.of(GreetingMeasured(greeting=""))

    def examine(self, seen: Sequence[ObservedTask]) -> tuple[Evidence, ...]:
        greetings = {self.kept(item).greeting for item in seen}
        return (Evidence(self.name, Outcome.INAPPLICABLE, "greeted", 0.0, f"Greeted with {greetings}."),)
"""

Install = Callable[[str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a distribution with one entry point, as pip would leave it."""
    (tmp_path / "greeting_probe.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))

    def made(entry: str) -> None:
        metadata = tmp_path / "greeting_probe-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting-probe\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[{GROUP}]\n{entry}\n")
        experiments.cache_clear()

    yield made
    experiments.cache_clear()


@pytest.fixture
def uninstall(tmp_path: Path) -> Callable[[], None]:
    """Remove what `install` installed."""

    def removed() -> None:
        shutil.rmtree(tmp_path / "greeting_probe-1.0.dist-info")
        importlib.invalidate_caches()
        experiments.cache_clear()

    return removed


def test_an_installed_experiment_is_planned_and_judged_like_our_own(install: Install, tmp_path: Path):
    install("greeting = greeting_probe:Greeting")
    assert [item.name for item in experiments()] == [*(item.name for item in BUILT_IN), "greeting"]
    assert "[experiments.greeting]\nrepeats = 2\n" in default_plan()
    plan = Plan.from_mapping({"experiments": {"greeting": {"repeats": 3}}})
    tasks = [task for _, task in planned_tasks(plan)]
    assert [task.repeat for task in tasks] == [1, 2, 3]
    with pytest.raises(PlanError, match=r"experiments\.greeting\.repeats must be"):
        Plan.from_mapping({"experiments": {"greeting": {"repeats": "often"}}})
    done = [Observation(task, Status.DONE, "", 0, 1.0, Measurement({"greeting": "220"})) for task in tasks]
    with open_archive(archive(tmp_path / "run.pepscope.zip", done)) as opened:
        run = judge_run(opened, "run")
    assert run.titles["greeting"] == "greetings of the server"
    assert [item.summary for cell in run.cells for item in cell.evidence] == ["Greeted with {'220'}."]


@pytest.mark.parametrize(
    ("packages", "said"),
    [
        ({"greeting": "greeting-probe"}, "install the package greeting-probe"),
        ({}, "install the package that offers greeting in the group pepscope.experiments"),
    ],
)
def test_an_archive_is_judged_without_an_experiment_that_is_not_installed(
    install: Install, uninstall: Callable[[], None], packages: dict[str, str], said: str, tmp_path: Path
):
    install("greeting = greeting_probe:Greeting")
    assert offering_package("greeting") == "greeting-probe"
    assert offering_package("transfers") == offering_package("unknown") == ""
    plan = Plan.from_mapping({"experiments": {"greeting": {"repeats": 2}, "transfers": {}}})
    done = [
        Observation(task, Status.DONE, "", 0, 1.0, Measurement({"greeting": "220"}))
        for _, task in planned_tasks(plan)
        if task.experiment == "greeting"
    ]
    rest = observation("spl_ha_dl_large_umts", Application.TCP)
    path = archive(tmp_path / "run.pepscope.zip", [*done, rest], plan=plan, packages=packages)
    with open_archive(path) as opened:
        before = judge_run(opened, "run")
    uninstall()
    with pytest.raises(PlanError, match=r"must be one of .*, got experiments\.greeting"):
        Plan.from_mapping(plan.to_mapping())
    with open_archive(path) as opened:
        assert opened.manifest.plan.digest == plan.digest
        after = judge_run(opened, "run")
    (warning,) = [text for text in after.warnings if "greeting" in text]
    assert warning == (f"greeting is an experiment that is not installed here, so what it measured is left out: {said}")
    cell = after.cell("tcp", Direction.DOWN)
    assert cell.verdict is before.cell("tcp", Direction.DOWN).verdict is Verdict.SPLIT_TCP
    assert cell.connections == before.cell("tcp", Direction.DOWN).connections
    assert after.plan_digest == before.plan_digest
    assert "Greeted with {'220'}." in [item.summary for every in before.cells for item in every.evidence]
    assert "Greeted with {'220'}." not in [item.summary for every in after.cells for item in every.evidence]


def test_a_plan_with_options_of_another_version_is_judged_as_far_as_it_is_read(tmp_path: Path):
    document = Plan.from_mapping({"experiments": {"abort": {}, "transfers": {}}}).to_mapping()
    document["experiments"]["abort"]["option_of_tomorrow"] = 3
    plan = Plan.from_archive(document)
    assert list(plan.experiments) == ["transfers"]
    assert plan.to_mapping() == document
    with open_archive(archive(tmp_path / "run.pepscope.zip", [observation("reg_dl_cubic_lte")], plan=plan)) as opened:
        run = judge_run(opened, "run")
    (warning,) = [text for text in run.warnings if "abort" in text]
    assert warning.startswith("tasks of abort that never ran are not counted")
    assert "option_of_tomorrow" in warning
    assert not [item for item in run.not_measured if item.experiment == "abort"]
    assert run.cell(Application.HTTP_DATA.value, Direction.DOWN).verdict is Verdict.REGULAR


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("abort = greeting_probe:Greeting", "a name that no experiment of pepscope has"),
        ("other = greeting_probe:Greeting", "whose name is 'other'"),
        ("greeting = greeting_probe:GreetingOptions", "a subclass of Experiment"),
        ("greeting = greeting_probe:Missing", "cannot be loaded"),
    ],
)
def test_an_entry_point_that_cannot_be_used_is_refused_in_one_sentence(install: Install, entry: str, said: str):
    install(entry)
    with pytest.raises(PlanError, match=said):
        experiments()


def test_names_and_titles_of_our_own_are_distinct():
    assert len({item.name for item in BUILT_IN}) == len({item.title for item in BUILT_IN}) == len(BUILT_IN)
    assert all(experiment(item.name) is item for item in BUILT_IN)


@pytest.mark.parametrize("known", BUILT_IN, ids=lambda known: known.name)
def test_each_of_our_own_is_one_module_with_a_test_and_a_page(known: Experiment[Any, Any]):
    module = f"prober.experiments.{known.name.replace('-', '_')}"
    assert type(known).__module__ == module
    page = (ROOT / "docs" / "experiments" / f"{known.name}.md").read_text(encoding="utf-8")
    own = [kind for kind in known.findings if kind.__module__ == module]
    assert not [item.value for kind in own for item in kind if item.row.weight and f"`{item.value}`" not in page]
    tests = [test.read_text(encoding="utf-8") for test in Path(__file__).parent.rglob("test_*.py")]
    assert any(f"from {module} import " in test for test in tests)
