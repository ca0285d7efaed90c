"""The matrix of an audit: page, terminal and files for CI."""
