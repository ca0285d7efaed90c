"""Many captures: found, matched, judged over processes or a cluster, and kept as tables."""
