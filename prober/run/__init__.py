"""Runs a plan on the mobile, task by task, and keeps what was measured."""
