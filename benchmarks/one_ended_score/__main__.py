"""Score detection from one capture: `python -m benchmarks.one_ended_score DIR...` (folders of networks).

By side and number of exchanges what is falsely called split, cleared and, by hidden leg, found, with Wilson intervals;
how well hidden legs are located; Brier scores and reliability tables; the worst errors, each with its capture and the
detector's reason. `--details` prints every count, `--json FILE` writes counts and judgements. The status is 1 where
anything is falsely called split. The client's groups of all hosts count as found by the widest hidden leg; boxes that
answer a part themselves (caches, TLS interception) are counted apart, and boxes that hold their acknowledgements back,
to look far away, are left out of the last column.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.one_ended_score.judgements import CaptureScore, score_network
from benchmarks.one_ended_score.tables import claims, rows, single, text


def networks(directories: Sequence[Path]) -> list[Path]:
    """Folders with a `truth.json` in or below these."""
    return sorted({path.parent for directory in directories for path in directory.rglob("truth.json")})


def document(scores: Sequence[CaptureScore]) -> dict[str, Any]:
    """The score for JSON: every count, and every judgement."""
    judgements = [each for score in scores for each in score.judgements]
    made = []
    for row in rows(judgements) + rows(judgements, by_host=True) + single(scores):
        made.append({**asdict(row), "share": row.share.document()})
    return {
        "schema": "one-ended-score-1",
        "captures": len(scores),
        "groups": len(judgements),
        "failures": [score.failure for score in scores if score.failure is not None],
        "strays": sum(score.strays for score in scores),
        "stray_splits": sum(score.stray_splits for score in scores),
        "rows": made,
        "brier": {
            side: claims(judgements, side).brier for side in ("server", "client") if claims(judgements, side).said
        },
        "judgements": [
            {**asdict(each), "false_alarm": each.false_alarm, "cleared_wrongly": each.cleared_wrongly}
            for each in judgements
        ],
    }


def main() -> int:
    """Score and print. The status is 1 where a network was accused wrongly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directories", type=Path, nargs="+", help="networks, or folders that hold networks")
    parser.add_argument("--json", type=Path, help="write counts and judgements to this file")
    parser.add_argument("--details", action="store_true", help="print every count, not only those of the goals")
    parser.add_argument("--errors", type=int, default=10, help="errors to list of each kind")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    folders = networks(options.directories)
    if not folders:
        parser.error(f"no truth.json in or below {', '.join(map(str, options.directories))}")
    with ProcessPoolExecutor(options.jobs) as pool:
        scores = [score for made in pool.map(score_network, folders, chunksize=4) for score in made]
    print(text(scores, options.errors, details=options.details))
    if options.json is not None:
        options.json.write_text(json.dumps(document(scores), indent=1) + "\n", encoding="utf-8")
    return int(any(each.false_alarm for score in scores for each in score.judgements))


if __name__ == "__main__":
    raise SystemExit(main())
