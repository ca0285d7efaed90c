"""The cellular path in virtual time: scenarios in, captures at both ends and the truth about them out."""
