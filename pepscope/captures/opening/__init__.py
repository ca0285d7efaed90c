"""What opening a capture needs to know: its files, and the filter compiled for its link types."""
