"""Results as JSON: documents, and text of many at once."""
