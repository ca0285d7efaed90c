"""Analytical models of TCP throughput: closed forms with units and domains; arguments outside a domain are refused."""
