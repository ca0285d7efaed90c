"""Real or simulated? A classifier that tells simulated captures from those of real kernels on the same set-ups."""
