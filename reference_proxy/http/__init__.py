"""TCP proxy for HTTP: exchanges of whole objects, with a shared cache and recompression."""
