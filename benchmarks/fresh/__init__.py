"""Fresh captures with known truth: real kernels and real proxies in network namespaces, made anew on every run."""
