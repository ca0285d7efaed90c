"""Holding back what a host acknowledges, by a netfilter queue or, where there is none, by a TUN device."""
