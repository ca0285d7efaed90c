"""Search over what a paper leaves open: which settings make most of its statements hold at once, and at what price."""
