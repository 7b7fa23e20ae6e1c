"""Slots as child processes: orders go down a pipe, reports come up another one."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from retoma.cluster.children import Child, Children
from retoma.cluster.timing import Timing


@dataclass(slots=True, kw_only=True)
class ChildProcesses(Children):
    """Spawned and exec'd, never forked."""

    url: str
    apps: Sequence[str]
    run_id: int | None
    timing: Timing
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def spawn(self, number: int, node_id: int, believe: float) -> None:
        """Start a slot in a process group of its own, so that Ctrl-C reaches the supervisor alone."""
        process = subprocess.Popen(
            [sys.executable, "-m", "retoma.cluster.slot"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            process_group=0,
        )
        settings = {
            "url": self.url,
            "apps": list(self.apps),
            "run_id": self.run_id,
            "node_id": node_id,
            "slot": number,
            "believe": believe,
            "timing": asdict(self.timing),
            "supervisor": os.getpid(),
        }
        child = Child(number, process)
        self.alive[number] = child
        assert process.stdout is not None
        self._selector.register(process.stdout, selectors.EVENT_READ, child)
        self.tell(child, settings)

    def tell(self, child: Child, order: Mapping[str, Any]) -> None:
        stdin = _process_of(child).stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(order).encode() + b"\n")
        except (BrokenPipeError, ValueError):
            return  # it is dead; ``reap`` will see it

    def hear(self, timeout: float) -> None:
        for key, _ in self._selector.select(timeout):
            child: Child = key.data
            block = os.read(key.fd, 65_536)
            if not block:
                self._selector.unregister(key.fileobj)
                continue
            *lines, child.buffer = (child.buffer + block).split(b"\n")
            for line in lines:
                self.take(child, json.loads(line))

    def forget(self, child: Child) -> None:
        process = _process_of(child)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is None:
                continue
            with contextlib.suppress(
                KeyError, ValueError
            ):  # it was not registered, or hear() has seen its end
                self._selector.unregister(pipe)
            pipe.close()


def _process_of(child: Child) -> subprocess.Popen[bytes]:
    assert isinstance(child.process, subprocess.Popen)
    return child.process
