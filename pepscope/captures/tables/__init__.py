"""Connections and exchanges of a capture as tables: for the terminal, pandas, CSV, JSON and Parquet."""
