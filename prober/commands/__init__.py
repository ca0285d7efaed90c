"""The commands `pepscope probe` and `pepscope audit`."""
