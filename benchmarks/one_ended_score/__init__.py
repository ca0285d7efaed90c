"""Score detection from one capture on networks whose truth is known: the tables of false alarms, found and cleared."""
