"""What a measurement may ask of the server beside its services: captures, ACKs held back, ports silenced."""
