"""Metamorphic tests: change what captures, clocks and middleboxes may change, and hold the verdict to what that allows."""
