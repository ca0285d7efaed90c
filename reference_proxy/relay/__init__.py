"""Relays between the two TCP connections of a split: at once, store and forward, window adaptation."""
