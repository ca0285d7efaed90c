"""Are the probabilities calibrated? Reliability and Brier score of verdicts, and a fit of the detector's table."""
