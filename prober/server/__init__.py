"""The wired end of a measurement: what it serves, what it captures, and how it keeps from being abused."""
