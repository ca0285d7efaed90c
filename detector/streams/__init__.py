"""What one stream of a connection did over time at one capture point."""
