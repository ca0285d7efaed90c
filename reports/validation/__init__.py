"""Scores of detectors as a table, a page, and files for continuous integration."""
