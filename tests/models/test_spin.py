"""The protocol's models hold, and each model with a guard taken out does not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.models.variants import VARIANTS, Variant

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "models"
REFERENCE = ROOT / "docs" / "reference" / "model-check.md"

# Compiling is most of the time for small models, so it is not optimised.
SAFETY = (["-DSAFETY", "-DNOCLAIM"], ["-E"])  # assertions; a dead worker is no bad end
LIVENESS = (["-DNFAIR=3"], ["-a", "-f"])  # the model's ltl, where nobody is frozen for ever
DEEPEST = 20_000


def tool(name: str) -> str:
    """The path of a program; without it the test is skipped, or fails if it is required."""
    path = shutil.which(name)
    if path is not None:
        return path
    reason = f"{name} is not installed: apt-get install spin gcc"
    if "spin" in os.environ.get("RETOMA_TEST_REQUIRE", "").replace(" ", "").split(","):
        pytest.fail(f"spin is required by RETOMA_TEST_REQUIRE: {reason}", pytrace=False)
    pytest.skip(reason)  # a laptop may lack Spin; CI requires it, so nothing is left out there


def called(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, f"{' '.join(command)}:\n{said}"
    return said


def checked(variant: Variant, folder: Path) -> str:
    """What the checker says about a variant."""
    spin, compiler = tool("spin"), tool("gcc")
    compiling, running = LIVENESS if variant.is_liveness else SAFETY
    macros = [f"-D{macro}" for macro in variant.macros.split()]
    called([spin, "-a", *macros, str(MODELS / f"{variant.model}.pml")], folder)
    called([compiler, "-w", "-DCOLLAPSE", *compiling, "-o", "pan", "pan.c"], folder)
    return called([str(folder / "pan"), *running, f"-m{DEEPEST}", "-w20"], folder)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_variant_gets_its_verdict(variant: Variant, tmp_path: Path) -> None:
    said = checked(variant, tmp_path)
    assert "max search depth too small" not in said, said
    found = re.search(r"errors: (\d+)", said)
    assert found, said
    if variant.caught_by is None:
        assert found[1] == "0", said
    else:
        violated = [line for line in said.splitlines() if line.startswith("pan:1:")]
        assert violated, f"the model without its guard holds, so it shows nothing:\n{said}"
        assert variant.caught_by in violated[0], said


@pytest.mark.parametrize("model", sorted({variant.model for variant in VARIANTS}))
def test_each_guard_that_can_be_taken_out_is_taken_out(model: str) -> None:
    text = (MODELS / f"{model}.pml").read_text("utf-8")
    switches = set(re.findall(r"(?:#ifdef |#ifndef |defined\()(\w+)", text))
    bounds = set(re.findall(r"#ifndef (\w+)\n#define \1 ", text))
    used = {name for v in VARIANTS if v.model == model for name in v.macros.split()}
    assert switches - bounds == {name for name in used if "=" not in name}


def test_the_reference_has_each_variant() -> None:
    text = REFERENCE.read_text("utf-8")
    missing = [str(v) for v in VARIANTS if f"| {v.name} | `{v.macros or 'none'}` |" not in text]
    assert not missing
