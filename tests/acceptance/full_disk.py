"""A night on a small disk of its own that fills up; run within a mount namespace of its own.

``unshare -Urm python -m tests.acceptance.full_disk FOLDER``: the disk is seen by this process and its
children alone, and is gone with them.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from tests.cluster.programs import launch, until
from tests.cluster.proof import prove
from tests.cluster.scene import Scene

PATIENCE_SECONDS = 2.0


def fill(disk: Path) -> Path:
    """Take the last byte of the disk; removing the file gives them all back."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(512))
    return filler


def at_the_first_command(disk: Path, folder: Path) -> None:
    """Nothing can be created: the message says so, and nothing is left behind that would confuse."""
    filler = fill(disk)
    arguments = ["run", "posting", "-p", "reference_date=2026-11-30"]
    database = {"RETOMA_DATABASE": f"sqlite:///{disk}/first.db"}
    program = launch(arguments, database, folder / "first.log")
    assert program.code() == 7, program.said()
    said = program.said()
    assert "disk" in said, said
    assert "full" in said, said
    assert "Traceback" not in said, said
    filler.unlink()
    again = launch(["db", "migrate"], database, folder / "again.log")
    assert again.code() == 0, again.said()
    (disk / "first.db").unlink()


def in_the_middle(disk: Path, folder: Path) -> None:
    """The slots wait; with space again the same run goes on, and nobody lost a try."""
    scene = Scene(f"sqlite:///{disk}/night.db", folder)
    try:
        program = scene.run(slots=2, **scene.close_gate())
        scene.held_by(program, 2)
        filler = fill(disk)
        scene.open_gate()
        time.sleep(PATIENCE_SECONDS)
        assert program.is_alive, program.said()
        done = scene.one("SELECT count(*) FROM batch_chunk WHERE state = 'COMPLETED'")
        assert done <= 1, "the disk was not full"
        filler.unlink()
        assert program.code() == 5, program.said()
        prove(scene)
        until("no program is left", lambda: not list(program.family()))
    finally:
        scene.close()


def main() -> None:
    """Mount the disk and play both scenes."""
    folder = Path(sys.argv[1])
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], check=True)
    at_the_first_command(disk, folder)
    in_the_middle(disk, folder)


if __name__ == "__main__":
    main()
