"""Experiments, one file each; `registry` lists them."""
