"""Where the transport ends that a capture times, and what its slowest link is."""
