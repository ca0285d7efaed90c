"""A one-ended laboratory: networks between real kernels, drawn from a seed, captured so that one end must suffice."""
