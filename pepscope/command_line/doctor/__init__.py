"""What is installed and allowed here, and which commands that is enough for."""
