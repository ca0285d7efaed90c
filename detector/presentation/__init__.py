"""What readers are shown beside a verdict: packets behind findings, series for figures, how the result was made."""
