"""The packets that show a finding: rows of connections that methods look at, as capture, frame and time."""
