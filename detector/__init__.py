"""Captures to verdicts: pair what two captures saw, relate their clocks, examine by every method, judge."""
