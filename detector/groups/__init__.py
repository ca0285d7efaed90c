"""Groups: what many connections to one port, from one network of clients, say together that none says alone."""

from __future__ import annotations

from detector.groups.disagreement import SPLIT, Stand, apart, camps, disagreement
from detector.groups.judging import judge_groups, with_group_verdicts
from detector.groups.membership import Member

__all__ = ["SPLIT", "Member", "Stand", "apart", "camps", "disagreement", "judge_groups", "with_group_verdicts"]
