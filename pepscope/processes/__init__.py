"""What this process and those that it starts owe the system and each other: signals, memory, work that is shared."""
