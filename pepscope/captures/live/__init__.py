"""Captures of a network interface by libpcap: into one file, into files that follow each other, and up to a bound."""
