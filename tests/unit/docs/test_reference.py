"""The reference: every function and every method of the accountant has an example."""

from __future__ import annotations

from pathlib import Path

from public_surface import everything, python_names

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = ROOT / "docs" / "reference"
# `public_surface` puts the folder of these modules on the path.
from reference_pages import python_pages  # noqa: E402
from reference_pages.examples import examples  # noqa: E402


def test_examples_cover_every_function_and_every_accountant_method() -> None:
    found = {
        name.rpartition(".")[2] if "Accountant." not in name else name for name in examples(REFERENCE / "examples")
    }
    methods = [public.name for public in everything() if public.name.startswith("Accountant.")]
    parts = [path for _, _, names in python_names.PARTS for path in python_pages._listed(names)]
    functions = [*python_pages.functions(), *(path.rpartition(".")[2] for path in parts if path.islower())]
    assert len(methods) >= 30
    assert [name for name in (*methods, *functions) if name not in found] == []
