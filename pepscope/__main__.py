"""`python -m pepscope` is the command `pepscope`."""

from __future__ import annotations

from pepscope.cli import main

if __name__ == "__main__":
    main()
