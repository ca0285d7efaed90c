"""A run as one file: written whole, checked while it is read."""
