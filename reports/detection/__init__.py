"""Verdicts on connections and groups: page, terminal, prose, tables and files for CI."""
