"""Who holds SQLite's write lock: the process behind the lock byte of the ``-shm`` file.

In WAL mode the writer holds an exclusive POSIX lock on byte 120 of the shared-memory file
(https://www.sqlite.org/walformat.html, WAL_WRITE_LOCK). ``F_GETLK`` names its process. The question
is asked by a helper process: closing any descriptor of a file drops all POSIX locks that the closing
process has on it, so asking from here could end our own connections' locks.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_WRITE_LOCK_BYTE = 120
_QUESTION = """
import fcntl, os, struct, sys
fd = os.open(sys.argv[1], os.O_RDWR)
flock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, int(sys.argv[2]), 1, 0)
kind, _, _, _, pid = struct.unpack("hhqqi4x", fcntl.fcntl(fd, fcntl.F_GETLK, flock))
print(pid if kind != fcntl.F_UNLCK else 0)
"""


def holder_of_write_lock(database: str) -> int | None:
    """The process that holds the write lock of the database file; None if nobody does."""
    shared = Path(database + "-shm")
    if not shared.exists():
        return None
    answer = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _QUESTION, str(shared), str(_WRITE_LOCK_BYTE)],
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    holder = int(answer.stdout.strip() or 0) if answer.returncode == 0 else 0
    return holder or None
