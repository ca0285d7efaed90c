"""Captures judged while they come: of a directory that grows, or of a network interface."""
