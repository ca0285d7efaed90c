"""The client that needs Python alone: `check`, `probe plan`, `probe run` and `probe upload` (docs/guide/client.md)."""
