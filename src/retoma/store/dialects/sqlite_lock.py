"""Who holds SQLite's write lock: the process behind the lock byte of the ``-shm`` file.

In WAL mode the writer holds an exclusive POSIX lock on byte 120 of the shared-memory file
(https://www.sqlite.org/walformat.html, WAL_WRITE_LOCK). ``F_GETLK`` names its process.
"""

from __future__ import annotations

from pathlib import Path

from retoma.host import Host

_WRITE_LOCK_BYTE = 120


def holder_of_write_lock(host: Host, database: str) -> int | None:
    """The process that holds the write lock of the database file; None if nobody does."""
    return host.lock_holder(Path(database + "-shm"), _WRITE_LOCK_BYTE)
