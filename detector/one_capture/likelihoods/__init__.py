"""How probable what one capture shows is by each hypothesis: exchanges, near ends, references, handshakes."""
