"""The experiments of the seed papers, run again: what was published beside what the simulator says."""
