"""Experiments of a check, one a file."""
