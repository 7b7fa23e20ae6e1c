"""How an error reaches a person: what happened, what is safe, the next command. No traceback."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import click

from retoma.errors import ExitCode, RetomaError


def guarded(action: Callable[[], Any]) -> int:
    """Run the action; its exit code."""
    try:
        result = action()
        sys.stdout.flush()  # a reader that has gone away must be met here, not at the very end
        return result if isinstance(result, int) else ExitCode.COMPLETED
    except RetomaError as error:
        say(error)
        return error.exit_code
    except click.exceptions.Abort:
        click.echo("retoma: interrupted", err=True)
        return ExitCode.STOPPED
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except click.exceptions.Exit as error:
        return error.exit_code
    except KeyboardInterrupt:
        click.echo("retoma: interrupted", err=True)
        return ExitCode.STOPPED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.COMPLETED
    except Exception as error:
        return _unforeseen(error)


def say(error: RetomaError) -> None:
    """Print an error for a person on standard error."""
    click.echo(f"retoma: {_plain(error.message)}", err=True)
    if error.safe:
        click.echo(f"  safe: {_plain(error.safe)}", err=True)
    if error.next_step:
        click.echo(f"  next: {_plain(error.next_step)}", err=True)


def _unforeseen(error: Exception) -> int:
    from retoma.store.failure import explained

    known = explained(error)
    if known is not None:
        say(known)
        return known.exit_code
    click.echo(
        f"retoma: internal error: {type(error).__name__}: {_plain(str(error))[:500]}", err=True
    )
    click.echo("  safe: committed chunks stay; the same command takes up from there", err=True)
    if os.environ.get("RETOMA_DEBUG"):
        traceback.print_exception(error)
    else:
        click.echo("  next: repeat with RETOMA_DEBUG=1 for the traceback", err=True)
    return ExitCode.INTERNAL


def _plain(text: str) -> str:
    """Control characters from data must not reach the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)
