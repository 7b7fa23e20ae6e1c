"""Job name → definition. The store holds names only; code comes from what is installed here."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path

from retoma.errors import UnknownJob, UsageError
from retoma.model.job import Job

_GROUP = "retoma.jobs"


def _jobs_of(module_name: str) -> list[Job]:
    name, _, attribute = module_name.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # a job beside the terminal needs no installation
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the module {name!r} can't be imported: {error}",
            next_step="check the spelling, and that it is installed or on PYTHONPATH",
        ) from None
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"the module {name!r} fails when it is imported: {type(error).__name__}: {error}",
            safe="Nothing was started.",
        ) from error
    if attribute:
        return [getattr(module, attribute)]
    return [value for value in vars(module).values() if isinstance(value, Job)]


def load_jobs(apps: Iterable[str]) -> dict[str, Job]:
    """The jobs of the named modules, and those that installed packages offer.

    A job of a named module replaces an installed one of the same name.
    """
    found: dict[str, Job] = {}
    for app in apps:
        for job in _jobs_of(app):
            found[job.name] = job
    for entry in entry_points(group=_GROUP):
        if entry.name not in found:
            try:
                job = entry.load()
            except ImportError:
                continue  # a package whose extra is missing must not hide the other jobs
            found.setdefault(job.name, job)
    return found


def find_job(jobs: dict[str, Job], name: str) -> Job:
    """The job of that name; raises ``UnknownJob`` with the names that are known."""
    if name not in jobs:
        known = ", ".join(sorted(jobs)) or "none"
        raise UnknownJob(
            f"no job is named {name!r} (known: {known})",
            safe="Nothing was started.",
            next_step="name the module that defines it with --app MODULE",
        )
    return jobs[name]
