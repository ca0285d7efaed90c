"""How evidence becomes a verdict."""
