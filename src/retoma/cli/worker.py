"""``retoma worker``: a supervisor and its slots, working on the runs of a database."""

from __future__ import annotations

import os

import click

from retoma.cli import options


@click.command()
@options.database_option
@options.app_option
@click.option("--slots", type=click.IntRange(1, 64), default=1, show_default=True)
@click.option("--name", default="", help="The node's name; host and process id if not given.")
@options.json_option
def worker(url: str, apps: tuple[str, ...], slots: int, name: str, as_json: bool) -> int:
    """Work on the live runs of this database until stopped by a signal.

    With --json each event is one JSON line on standard output.
    """
    from retoma.cli.signals import stop_on_signal
    from retoma.cli.telling import Telling
    from retoma.cluster.supervisor import Supervisor
    from retoma.cluster.timing import timing_from
    from retoma.events import EventBus
    from retoma.registry import load_jobs

    store = options.open_store(url)
    jobs = load_jobs(apps)
    bus = EventBus()

    bus.subscribe(Telling(store.clock, as_json).hear)
    click.echo(
        f"retoma worker: {slots} slot(s) on {store.shown_url}, jobs {', '.join(jobs)}", err=True
    )
    with stop_on_signal() as stop:
        supervisor = Supervisor(
            store,
            jobs,
            apps,
            slots,
            name=name,
            timing=timing_from(os.environ),
            bus=bus,
            stop_requested=stop,
        )
        supervisor.run()
    click.echo("retoma worker: left", err=True)
    return 0
