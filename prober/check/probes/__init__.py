"""Sockets that measure one thing at one place for a check's experiments."""
