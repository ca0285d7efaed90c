"""Running one experiment after another, with a count of all their runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from papers.experiment import Experiment
from reference_sim.campaign import CampaignResult, run_campaign


class RunCount:
    """Runs of many campaigns as one piece of work: `progress` gets those that are done, and `total`."""

    def __init__(self, total: int, progress: Callable[[int, int], object] | None = None) -> None:
        self._total, self._progress = total, progress
        self._before = 0
        #: Runs that were made, the others being there already.
        self.made = 0

    def run(
        self, experiments: Sequence[Experiment], directory: Path, processes: int | None
    ) -> Mapping[str, CampaignResult]:
        """Results of the experiments by name, each in a directory of its name. Raises what `run_campaign` raises."""
        results = {}
        for experiment in experiments:
            results[experiment.name] = run_campaign(
                experiment.campaign,
                directory / experiment.name,
                processes=processes,
                progress=self._report,
                measure=experiment.measure,
            )
            self._before += experiment.campaign.runs
        return results

    def _report(self, done: int, _runs: int) -> None:
        self.made += 1
        if self._progress is not None:
            self._progress(self._before + done, self._total)
