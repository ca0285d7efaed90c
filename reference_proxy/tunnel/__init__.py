"""Split-TCP whose mobile leg is carried in UDP: datagrams, streams, and the two ends."""
