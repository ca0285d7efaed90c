"""What a split gains today: the tables of docs/models/split_gain.md."""
