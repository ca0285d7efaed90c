"""Simulated runs and papers that were run again, as pages."""
