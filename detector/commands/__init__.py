"""The commands `detect`, `explain`, `audit-captures` and `query`."""
