"""Detectors scored on labelled captures: labels read, captures judged, rates with intervals, and what became worse."""
