"""Where the captures were taken, when they were watching, and what they lack."""
