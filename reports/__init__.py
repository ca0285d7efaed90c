"""Results to tables, figures, pages and files for CI."""
