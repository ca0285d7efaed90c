"""Detection methods, one a file."""
