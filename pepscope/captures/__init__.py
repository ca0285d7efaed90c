"""Captures as columns: packets, connections and frames of a file, or live from a device."""
