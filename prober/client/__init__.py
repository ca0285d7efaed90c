"""The mobile's end of a measurement: control channel, transfers by each application, probes, captures."""
