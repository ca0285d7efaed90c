"""Hypotheses for groups, and how probable what their members show is under each."""
