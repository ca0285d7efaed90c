"""What needs privileges while a server runs, in a process of its own behind a narrow pipe."""
