"""Scores of the detector on pairs of captures whose truth is known, and of the reader beside tshark."""
