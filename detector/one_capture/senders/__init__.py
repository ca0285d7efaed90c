"""What far hosts' own packets tell of who made them: handshakes, stacks, clocks, and the response to load."""
