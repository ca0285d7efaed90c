"""Do probabilities mean what they say? Reliability and Brier score of verdicts, and a fit of the detector's table."""
