"""Where the command `pepscope` starts, as `python -m pepscope` does."""

from __future__ import annotations

import gc


def main() -> None:
    """Run the command line. Until its command is loaded no garbage is looked for: imports make objects that stay."""
    gc.disable()
    from pepscope.cli import main as run

    run()


if __name__ == "__main__":
    main()
