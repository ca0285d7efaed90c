"""Boxes that let handshakes pass and acknowledge data: how far round trips of one path may lie apart without one."""
