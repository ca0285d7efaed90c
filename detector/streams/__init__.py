"""Streams and summaries of connections as captures show them, as columns and as objects: what methods read.

`loaded`, `summaries`, `sides`, `flow_figures` and `known` hold many connections as columns. The other files say what
one stream did over time at one capture point: bytes and acknowledgements (`curves`), windows, payload.
"""
