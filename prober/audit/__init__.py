"""Archives to verdicts: captures judged, findings of experiments weighed, one verdict for each matrix cell."""
