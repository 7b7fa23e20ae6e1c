"""A throw-away database server that cannot outlive the process that wanted it.

Between the owner and the server stands a *guard*: this file, run as a small program of its own.
The guard prepares the data directory, starts the server, and then waits. When the owner asks for
it, or is gone (even by SIGKILL, at any instant once the guard has its orders), the guard ends the
server and removes the directory. It runs in a session of its own, so that a Ctrl-C meant for the
owner does not reach it. It reads and writes one line of JSON each way; then the closing of its
standard input means "stop".

Only the standard library is used, and nothing of the rest of the package: the guard is started
with `python -I -S`, so it costs a few milliseconds and no site-packages can change what it does.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TypedDict

POLL_SECONDS = 0.02
OWNER_CHECK_SECONDS = 0.5
STOP_SECONDS = 10.0
PORT_TRIES = 5


class ServerStartError(RuntimeError):
    """The server did not start; the message has the last lines that it wrote."""


class _OwnerLeftError(Exception):
    """The owner asked for the end, or is dead: nobody waits for this server any more."""


@dataclass(frozen=True)
class ServerPlan:
    """What the guard shall run, in which directory, as whom.

    `{port}` in `serve` is replaced by a free loopback port. `uid` and `gid` are those of the
    unprivileged account to run under, or None to stay who we are. The directory exists, belongs
    to that account, and is removed with all that is in it.
    """

    directory: str
    prepare: list[str]
    serve: list[str]
    ready_text: str
    port_taken_text: str
    stop_signal: int
    uid: int | None = None
    gid: int | None = None
    start_seconds: float = 90.0


class GuardedServer:
    """A running server and its guard, seen from the owner."""

    def __init__(self, plan: ServerPlan) -> None:
        """Starts the server and returns when it accepts connections on `port`.

        Raises:
            ServerStartError: with the server's own last words; nothing is left behind.
        """
        self._plan = plan
        self._owner = os.getpid()
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            text=True,
        )
        self.port = self._first_answer()

    @property
    def guard_pid(self) -> int:
        """The guard's process id, for tests that kill it."""
        return self._guard.pid

    def stop(self) -> None:
        """Ends the server and removes its directory; does nothing the second time.

        A process forked from the owner is not the owner: there it does nothing at all.
        """
        if os.getpid() != self._owner:
            return
        for pipe in (self._guard.stdin, self._guard.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self._guard.wait(STOP_SECONDS + 5)
        except subprocess.TimeoutExpired:
            self._guard.kill()
            self._guard.wait()
        if Path(self._plan.directory).exists():
            self._clean_up_for_a_dead_guard()

    def _first_answer(self) -> int:
        stdin, stdout = self._guard.stdin, self._guard.stdout
        if stdin is None or stdout is None:
            raise AssertionError("the guard was started without its pipes")
        try:
            stdin.write(json.dumps({"owner": self._owner, **asdict(self._plan)}) + "\n")
            stdin.flush()
            answer = json.loads(stdout.readline() or '{"error": "its guard died"}')
        except BaseException:
            self.stop()
            raise
        if "port" not in answer:
            self.stop()
            raise ServerStartError(str(answer["error"]))
        return int(answer["port"])

    def _clean_up_for_a_dead_guard(self) -> None:
        # The server is still in the guard's process group, whose number stays taken while it lives.
        deadline = time.monotonic() + STOP_SECONDS
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < deadline:
                os.killpg(self._guard.pid, self._plan.stop_signal)
                time.sleep(POLL_SECONDS)
            os.killpg(self._guard.pid, signal.SIGKILL)
        _remove(self._plan.directory)


# ---------------------------------------------------------------------------------------------
# From here on: the guard's own program.


@dataclass(frozen=True)
class _Guard:
    owner: int
    plan: ServerPlan

    def run(self) -> None:
        """Serves until the owner leaves; whatever happens, ends with no server and no directory."""
        server: subprocess.Popen[bytes] | None = None
        try:
            self._prepare()
            server, port = self._serve()
            _answer({"port": port})
            while server.poll() is None:
                self._wait(OWNER_CHECK_SECONDS)
        except ServerStartError as error:
            _answer({"error": str(error)})
        except _OwnerLeftError:
            pass
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            if server is not None:
                _end(server, self.plan.stop_signal)
            _remove(self.plan.directory)

    def _prepare(self) -> None:
        with self._log("prepare.log").open("wb") as log:
            # A group of its own: such programs run others, which must not go on alone.
            process = self._start(self.plan.prepare, log, process_group=0)
        try:
            deadline = time.monotonic() + self.plan.start_seconds
            while process.poll() is None and time.monotonic() < deadline:
                self._wait(POLL_SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if process.returncode != 0:
            raise ServerStartError(self._last_words("prepare.log"))

    def _serve(self) -> tuple[subprocess.Popen[bytes], int]:
        # A free port can be taken by somebody else before the server has it: then try another.
        for _ in range(PORT_TRIES):
            port = _free_port()
            command = [part.replace("{port}", str(port)) for part in self.plan.serve]
            with self._log("server.log").open("wb") as log:
                server = self._start(command, log)
            try:
                if self._is_ready(server):
                    return server, port
            except BaseException:
                _end(server, self.plan.stop_signal)
                raise
            _end(server, self.plan.stop_signal)
            if self.plan.port_taken_text not in self._read("server.log"):
                break
        raise ServerStartError(self._last_words("server.log"))

    def _is_ready(self, server: subprocess.Popen[bytes]) -> bool:
        deadline = time.monotonic() + self.plan.start_seconds
        while server.poll() is None and time.monotonic() < deadline:
            if self.plan.ready_text in self._read("server.log"):
                return True
            self._wait(POLL_SECONDS)
        return False

    def _wait(self, seconds: float) -> None:
        """Waits; raises as soon as the owner has closed the pipe or is dead.

        Both are asked: a process forked from the owner can hold the pipe open after its death.
        """
        readable, _, _ = select.select([sys.stdin], [], [], seconds)
        if readable or os.getppid() != self.owner:
            raise _OwnerLeftError

    def _start(
        self, command: list[str], log: IO[bytes], process_group: int | None = None
    ) -> subprocess.Popen[bytes]:
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": self.plan.directory,
            "TMPDIR": self.plan.directory,
            "LC_ALL": "C",
        }
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.plan.directory,
                env=environment,
                umask=0o077,
                process_group=process_group,
                **identity(self.plan.uid, self.plan.gid),
            )
        except OSError as error:
            raise ServerStartError(f"{command[0]} cannot be run: {error}") from error

    def _log(self, name: str) -> Path:
        return Path(self.plan.directory, name)

    def _read(self, name: str) -> str:
        return self._log(name).read_text("utf-8", errors="replace")

    def _last_words(self, name: str) -> str:
        return "\n".join(self._read(name).splitlines()[-15:]) or "it wrote nothing"


class Identity(TypedDict, total=False):
    """The arguments of subprocess that say under which account a child runs."""

    user: int
    group: int
    extra_groups: list[int]


def identity(uid: int | None, gid: int | None) -> Identity:
    """Under this account and its own group alone; without one, no change."""
    if uid is None or gid is None:
        return {}
    return {"user": uid, "group": gid, "extra_groups": []}


def _end(process: subprocess.Popen[bytes], stop_signal: int) -> None:
    process.send_signal(stop_signal)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _remove(directory: str) -> None:
    """Removes it all, also from under a process that is dying and still writes."""
    deadline = time.monotonic() + STOP_SECONDS
    while Path(directory).exists():
        shutil.rmtree(directory, ignore_errors=True)
        if time.monotonic() > deadline:
            return
        time.sleep(POLL_SECONDS)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answer(words: dict[str, object]) -> None:
    # An owner that is already gone is noticed at the next wait, not here.
    with contextlib.suppress(OSError):
        sys.stdout.write(json.dumps(words) + "\n")
        sys.stdout.flush()


def _leave(_number: int, _frame: object) -> None:
    raise _OwnerLeftError


def _main() -> None:
    signal.signal(signal.SIGTERM, _leave)
    request = json.loads(sys.stdin.readline() or "null")
    if request is not None:
        _Guard(request.pop("owner"), ServerPlan(**request)).run()


if __name__ == "__main__":
    _main()
