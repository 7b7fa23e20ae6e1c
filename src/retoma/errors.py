"""Every error of Retoma, drawn as one tree, and the kinds of failure.

RetomaError                      said to a person: what happened, what is safe, what to do
├── UsageError                   exit 2: a wrong command, parameter or configuration
│   └── UnknownJob
├── DatabaseUnreachable          exit 7: nothing was started
├── AlreadyRunning               exit 6: the same identity is running elsewhere
├── NotPermitted                 exit 9: refused: nothing was started or changed
├── NeedsPerson                  exit 4: a machine must not decide this
│   ├── InstanceAbandoned
│   ├── SchemaMismatch
│   └── SourceChanged            the pinned input is not what was read
├── TransientFailure             exit 3: a restart is safe and useful
└── PermanentFailure             exit 4
InvalidItem, ItemNotReady        raised by a job's own function about one item
LostClaim, WitnessGone           the engine walks away; never shown as an item error
"""

from __future__ import annotations

from enum import StrEnum


class FailureKind(StrEnum):
    """What a failure is, and so what is done about it."""

    TRANSIENT = "TRANSIENT"  # wait outside the transaction, then try again
    PERMANENT = "PERMANENT"  # fail fast
    INVALID_ITEM = "INVALID_ITEM"  # set the item aside, go on
    NOT_READY = "NOT_READY"  # defer the item, go on
    DUPLICATE = "DUPLICATE"  # fine, counted
    LOST_RACE = "LOST_RACE"  # somebody else owns it: walk away
    CRASH = "CRASH"  # the slot died or passed its deadline


class ExitCode:
    """The exit codes, the same for all commands."""

    COMPLETED = 0
    INTERNAL = 1
    USAGE = 2
    RESTARTABLE = 3
    NEEDS_PERSON = 4
    SET_ASIDE = 5
    RUNNING_ELSEWHERE = 6
    UNREACHABLE = 7
    STOPPED = 8
    NOT_PERMITTED = 9


class RetomaError(Exception):
    """Something a person must read: ``message``, what is ``safe``, and the ``next_step``."""

    exit_code = ExitCode.INTERNAL

    def __init__(self, message: str, *, safe: str = "", next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.safe = safe
        self.next_step = next_step


class UsageError(RetomaError):
    """The command, a parameter or the configuration is wrong; nothing was stored."""

    exit_code = ExitCode.USAGE


class UnknownJob(UsageError):
    """No job of that name is known to this installation."""


class DatabaseUnreachable(RetomaError):
    """The database did not answer before anything was started."""

    exit_code = ExitCode.UNREACHABLE


class AlreadyRunning(RetomaError):
    """The same identity has a live owner elsewhere."""

    exit_code = ExitCode.RUNNING_ELSEWHERE


class NotPermitted(RetomaError):
    """Refused by a rule of this store or of its owner; nothing was started or changed."""

    exit_code = ExitCode.NOT_PERMITTED


class NeedsPerson(RetomaError):
    """Refused or failed in a way that a restart does not cure."""

    exit_code = ExitCode.NEEDS_PERSON


class InstanceAbandoned(NeedsPerson):
    """The instance was abandoned by a person and never runs again."""


class SchemaMismatch(NeedsPerson):
    """The control tables are older or newer than this version."""


class SourceChanged(NeedsPerson):
    """The pinned input differs from what was read."""


class TransientFailure(RetomaError):
    """Failed for a passing reason; what is committed stays, a restart goes on from there."""

    exit_code = ExitCode.RESTARTABLE


class PermanentFailure(RetomaError):
    """Failed for a reason that waiting does not cure."""

    exit_code = ExitCode.NEEDS_PERSON


class InvalidItem(Exception):
    """Raised by a job's function: this item can't be processed; it is set aside with the reason."""

    def __init__(self, reason: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.field = field


class ItemNotReady(Exception):
    """Raised by a job's function: this item is not ready yet; it is deferred."""

    def __init__(self, reason: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.field = field


class LostClaim(Exception):
    """The chunk is no longer ours: roll back and walk away."""


class WitnessGone(Exception):
    """The database rolled the work transaction back under code that swallowed the error."""
