"""Is this network splitting my TCP? Judged from one end, with Python's standard library alone (docs/guide/check.md)."""
