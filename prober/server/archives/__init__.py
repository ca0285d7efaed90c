"""Archives that clients upload: taken piece by piece, stored once they are whole, deleted by rules."""
