"""Which connections of two captures are one transfer, how their streams align, and how sure that is.

`captures` is what others call. `matching` takes pairs in rounds: candidates by keys (`candidates`), by packets in
common (`packet_sketch`), by payload (`content_candidates`), of which `assignment` finds the best pairing; `starts`
compares times. Of each `match` the streams are laid over each other (`alignment`), its `confidence` allows for other
pairings (`rivals`), and `absence` says why one capture lacks a connection.
"""
