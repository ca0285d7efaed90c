"""The relation between the clocks of two captures, and what timing it allows."""
