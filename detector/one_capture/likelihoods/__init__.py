"""How probable what one capture shows of a member is by each hypothesis: exchanges, near ends, references, handshakes.

`exchange_timing` measures by how much answers are later than the transport, `timing_tables` has learned densities of
that by hypothesis, and `exchange_nats` looks them up; `priors` has what is known beforehand. Each of the other files
weighs one thing beside exchanges.
"""
