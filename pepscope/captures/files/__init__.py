"""Capture files as a whole: several read at once, digests, copies with comments."""
