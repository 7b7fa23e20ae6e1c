"""Entry of ``retoma``: a group that loads a command only when it is used."""

from __future__ import annotations

import importlib
import sys
from importlib.metadata import entry_points
from typing import Any

import click

_COMMANDS = {
    "chaos": ("retoma.cli.chaos", "chaos", "Kill and freeze workers at every crash point."),
    "db": ("retoma.cli.db", "db", "Create, check and print the control tables."),
    "doctor": ("retoma.cli.doctor", "doctor", "Check installation, database and rights."),
    "errors": ("retoma.cli.errors", "errors", "List and export items that were set aside."),
    "init": ("retoma.cli.init", "init", "Write a small project that runs, to begin with."),
    "job": ("retoma.cli.job", "job", "List and check jobs, or see what a run would do."),
    "run": ("retoma.cli.run", "run", "Start or take up a job for an identity, in the foreground."),
    "status": ("retoma.cli.status", "status", "Show the runs, or how one run stands."),
    "stop": ("retoma.cli.stop", "stop", "Stop a run at its chunk borders."),
    "submit": ("retoma.cli.submit", "submit", "Leave a run to the workers."),
    "verify": (
        "retoma.cli.verify",
        "verify",
        "Prove that a run lost nothing and did nothing twice.",
    ),
    "why": ("retoma.cli.why", "why", "Say why a run or a chunk stands as it does."),
    "worker": ("retoma.cli.worker", "worker", "Work on the runs of this database."),
}
_PLUGINS = "retoma.commands"
_PLUGIN_HELP = {
    "demo": "Make a night, kill its workers, resume, and print the proof.",
    "reconcile": "Reconcile bank statements with internal transactions.",
}


class LazyGroup(click.Group):
    """Knows its commands by name and one line of help; imports one when it is called."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*_COMMANDS, *_PLUGIN_HELP})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name in _COMMANDS:
            module, attribute, _ = _COMMANDS[name]
            command = getattr(importlib.import_module(module), attribute)
            assert isinstance(command, click.Command)
            return command
        for entry in entry_points(group=_PLUGINS):
            if entry.name == name:
                loaded = entry.load()
                assert isinstance(loaded, click.Command)
                return loaded
        return None

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, help_text) for name, (_, _, help_text) in _COMMANDS.items()]
        rows += list(_PLUGIN_HELP.items())
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows))


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="retoma", message="retoma %(version)s")
def cli() -> None:
    """Batch jobs that can be killed at any instant and take up again where they stopped.

    \b
    retoma demo                                    see it happen
    retoma run posting -p reference_date=2026-11-30
    retoma status

    Exit codes: 0 completed or already complete; 1 internal error; 2 usage or configuration;
    3 failed, a restart is safe and useful; 4 needs a person; 5 completed with items set aside;
    6 running elsewhere; 7 database unreachable; 8 stopped, resumable; 9 not permitted.
    """


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line; every error ends as one message and its exit code."""
    from retoma.cli.failure import guarded

    sys.exit(guarded(lambda: cli.main(args=arguments, standalone_mode=False)))
