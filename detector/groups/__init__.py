"""Groups: a verdict on all connections to one port from one network of clients, from their evidence together."""

from __future__ import annotations

from detector.groups.disagreement import JudgedConnection, disagreement, distinction, split_and_regular
from detector.groups.judged_part import JudgedPart
from detector.groups.judging import judge_groups, with_group_verdicts
from detector.groups.membership import Members

__all__ = [
    "JudgedConnection",
    "JudgedPart",
    "Members",
    "disagreement",
    "distinction",
    "judge_groups",
    "split_and_regular",
    "with_group_verdicts",
]
