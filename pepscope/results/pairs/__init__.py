"""Verdicts on many connections as columns: what a table keeps, and the stretches of the path that they cover."""
