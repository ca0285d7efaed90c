"""Makes the measurements that captures need: two ends, experiments, archives, and the matrix read off them."""
