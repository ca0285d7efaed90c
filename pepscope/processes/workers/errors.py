"""What stops work that is shared."""

from __future__ import annotations

from pepscope.errors import PepscopeError

#: A piece of work is tried so often where its worker dies; then it is to blame.
MOST_TRIES = 3


class WorkerDiedError(PepscopeError):
    """A worker died, for lack of memory or by a signal, each time it did this piece of work."""

    @classmethod
    def of_one(cls) -> WorkerDiedError:
        """The error of a piece of work."""
        return cls("its worker died each time, for lack of memory or by a signal")


class ClusterLostError(PepscopeError):
    """A cluster went away while it worked, and did not come back."""
