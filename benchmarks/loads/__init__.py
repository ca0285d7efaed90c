"""Servers, the proxy and the watch under long and hostile loads."""
