"""The client that needs Python alone: `check`, `probe plan` and `probe run` (docs/guide/client.md)."""
