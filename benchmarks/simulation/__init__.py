"""The simulator and the live path beside ns-2, ns-3 and what is exact."""
