"""`pepscope check` on many paths between real kernels with delays: `python -m benchmarks.check_campaign --help`."""
