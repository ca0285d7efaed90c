"""Captures to verdicts."""
