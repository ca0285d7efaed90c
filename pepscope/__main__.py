"""Where the command `pepscope` starts, as `python -m pepscope` does."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line. Until its command is loaded no garbage is looked for: imports make objects that stay."""
    gc.disable()
    from pepscope.command_line.direct import run_directly

    if (status := run_directly(sys.argv[1:])) is not None:
        sys.exit(status)
    from pepscope.cli import main as run

    run()


if __name__ == "__main__":
    main()
