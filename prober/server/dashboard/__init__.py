"""A read-only web page about the archives that a server stores: a process of its own, without any privilege."""
