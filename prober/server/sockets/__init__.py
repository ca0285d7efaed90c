"""Listening, accepting, admission, and what the kernel reports of a server's sockets."""
