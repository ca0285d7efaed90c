"""What every command shares: options, progress, logs and signals; and the command `inspect`."""
