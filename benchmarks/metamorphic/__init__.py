"""Metamorphic tests: change what captures, clocks and middleboxes may, and hold the verdict to what that allows."""
