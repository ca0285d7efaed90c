"""Habits of hosts and split points, each of one for all that it does alike."""
