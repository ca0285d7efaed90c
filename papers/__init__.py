"""The seed papers' experiments, run again in the simulator: published statements beside simulated results."""
