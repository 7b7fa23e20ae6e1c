"""``retoma worker``: a supervisor and its slots, working on the runs of a database."""

from __future__ import annotations

import click

from retoma.cli import options


@click.command()
@options.database_option
@options.app_option
@click.option("--slots", type=click.IntRange(1, 64), default=1, show_default=True)
@click.option("--name", default="", help="The node's name; host and process id if not given.")
def worker(url: str, apps: tuple[str, ...], slots: int, name: str) -> int:
    """Work on the live runs of this database until stopped by a signal."""
    from retoma.cli.signals import stop_on_signal
    from retoma.cluster.supervisor import Supervisor
    from retoma.events import Event, EventBus
    from retoma.registry import load_jobs

    store = options.open_store(url)
    jobs = load_jobs(apps)
    bus = EventBus()

    def show(event: Event) -> None:
        if event.name != "chunk.completed":
            run = f" run {event.run_id}" if event.run_id else ""
            chunk = f" chunk {event.chunk_id}" if event.chunk_id else ""
            click.echo(f"{event.name}{run}{chunk}: {event.detail[:500]}", err=True)

    bus.subscribe(show)
    click.echo(
        f"retoma worker: {slots} slot(s) on {store.shown_url}, jobs {', '.join(jobs)}", err=True
    )
    with stop_on_signal() as stop:
        supervisor = Supervisor(store, jobs, apps, slots, name=name, bus=bus, stop_requested=stop)
        supervisor.run()
    click.echo("retoma worker: left", err=True)
    return 0
