"""What the operating system reports and does: network devices, sockets, clocks, delayed acknowledgements."""
