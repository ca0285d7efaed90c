"""Statements of papers: their tables, what they compare, and how they come out."""
