"""Which connections of two captures are one transfer, how their streams align, and how sure that is."""
