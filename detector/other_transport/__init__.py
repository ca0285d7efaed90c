"""Legs that carry a connection's bytes in another form: UDP datagrams, or an encrypted stream."""
