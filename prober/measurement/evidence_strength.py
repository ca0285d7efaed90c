"""Strengths that findings of several experiments have in common."""

from __future__ import annotations

#: Of a finding whose page calls it weak: the absence of a sign that many splits do not give either. Reports call
#: strengths below 0.3 weak (`reports.detection.prose`).
WEAK = 0.25
