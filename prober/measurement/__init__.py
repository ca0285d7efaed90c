"""What an experiment, a task and an observation are, and what experiments share."""
