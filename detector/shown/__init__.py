"""What is shown beside a verdict: the packets behind findings, series for figures, how the result was made."""
