"""Evidence on many connections as columns: what a method hands over, and the table that keeps it."""
