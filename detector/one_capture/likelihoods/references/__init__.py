"""References: round trips to the same hosts that a split point does not shorten, outside TCP or on other ports."""
