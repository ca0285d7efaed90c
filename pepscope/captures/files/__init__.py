"""Capture files: what may be given as one, digests, frames with headers, frames by number, copies with comments."""
