"""A validation as the JSON contract `validate-1` (`pepscope/schemas/validate-1.json`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pepscope
from detector.corpora.validation.intervals import share_document
from detector.corpora.validation.results import run_id

if TYPE_CHECKING:
    from detector.corpora.validation.calibration import Bin
    from detector.corpora.validation.results import Change, Comparison, DetectorScore, Validation

SCHEMA_VERSION = 1


def validation_document(validation: Validation) -> dict[str, Any]:
    """The whole document, of plain dictionaries, lists, texts and finite numbers."""
    return {
        "schema": SCHEMA_VERSION,
        "pepscope": pepscope.__version__,
        "corpora": list(validation.corpora),
        "runs": [
            {
                "name": run.name,
                "id": run_id(run),
                "captures": [
                    {"path": path, "sha256": digest} for path, digest in zip(run.captures, run.digests, strict=True)
                ],
                "cases": len(run.cases),
            }
            for run in validation.runs
        ],
        "cases": list(_case_documents(validation)),
        "detectors": [_detector_document(each) for each in validation.detectors],
        "beside": [_change_document(each) for each in validation.beside],
        "against": None if validation.comparison is None else _comparison_document(validation.comparison),
    }


def _case_documents(validation: Validation) -> Iterator[dict[str, Any]]:
    places = [number for number, run in enumerate(validation.runs) for _ in run.cases]
    for place, case, name in zip(places, validation.cases, validation.case_ids, strict=True):
        yield {
            "id": name,
            "run": place,
            "label": case.name,
            "truth": case.truth.value,
            "accepted": sorted(verdict.value for verdict in case.accepted),
            "where": None if case.where is None else case.where.value,
            "factors": dict(case.factors),
        }


def _detector_document(score: DetectorScore) -> dict[str, Any]:
    timing, claims, curve = score.timing, score.claims, score.roc
    unlabelled, unlabelled_split = score.unlabelled
    return {
        "name": score.name,
        "rates": [share_document(name, share) for name, share in score.rates.items()],
        "confusion": score.confusion,
        "roc": {
            "false_alarm": list(curve.false_alarm), "found": list(curve.found), "threshold": list(curve.threshold),
            "area": curve.area, "without_probability": curve.unknown,
        },
        "calibration": {
            "brier": claims.brier if claims.said else None,
            "bins": [_bin_document(each) for each in claims.bins()],
        },
        "by_factor": [
            {
                "factor": row.factor, "value": row.value, "cases": row.cases,
                "rates": [share_document(name, share) for name, share in row.rates.items()],
            }
            for row in score.by_factor
        ],
        "timing": {
            "total_s": timing.total_s, "run_median_s": timing.run_median_s, "run_p95_s": timing.run_p95_s,
            "connection_median_s": timing.connection_median_s, "connection_p95_s": timing.connection_p95_s,
        },
        "unlabelled": {"connections": unlabelled, "called_split": unlabelled_split},
        "runs": [
            {"seconds": answer.seconds, "connections": answer.connections, "failure": answer.failure}
            for answer in score.answers
        ],
        "judgements": [
            {
                "verdict": judged.said, "score": judged.score.value, "split_probability": judged.split_probability,
                "where": None if judged.where is None else judged.where.value, "reason": judged.reason,
            }
            for judged in score.judgements
        ],
    }  # fmt: skip


def _bin_document(each: Bin) -> dict[str, Any]:
    return {"low": each.low, "high": each.high, "mean_said": each.mean_said, **each.held.document()}


def _change_document(change: Change) -> dict[str, Any]:
    return {
        "detector": change.detector, "rate": change.rate, "before": change.before.document(),
        "now": change.now.document(), "runs_worse": change.worse, "runs_better": change.better,
        "p_value": change.p_value, "is_worse": change.is_worse,
    }  # fmt: skip


def _comparison_document(comparison: Comparison) -> dict[str, Any]:
    return {
        "baseline": comparison.baseline, "test": comparison.test, "significance": comparison.significance,
        "in_common": comparison.in_common, "only_now": comparison.only_now, "only_before": comparison.only_before,
        "is_worse": comparison.is_worse, "changes": [_change_document(each) for each in comparison.changes],
    }  # fmt: skip
