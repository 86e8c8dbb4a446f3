"""The guide of federated learning, typed as it is printed, in an environment with NVFlare and this distribution alone."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from federated_environment import ROOT, Environment, kill_all_of, one_federation

GUIDE = ROOT / "docs" / "guides" / "federated-learning.md"


def test_guide_typed_as_printed_charges_three_updates(tmp_path: Path) -> None:
    flare = Environment(tmp_path / "environment", f"{ROOT}[nvflare]")
    page, _, _ = GUIDE.read_text(encoding="utf-8").partition("## Flower")
    commands = ["set -e"]
    for name, kind, body in re.findall(r"(?:`(\w+\.py)` .*\n\n)?^```(sh|py)\b.*\n([^`]*)^```", page, re.MULTILINE):
        if kind == "sh":
            commands.append(body)
        else:
            (tmp_path / name).write_text(body, encoding="utf-8")
    script = tmp_path / "typed.sh"
    script.write_text("\n".join(commands), encoding="utf-8")
    with one_federation(), open(tmp_path / "typed.txt", "w+", encoding="utf-8") as said:
        here = {"cwd": tmp_path, "env": flare.env, "stdout": said, "stderr": said}
        try:
            typed = subprocess.run(["bash", str(script)], timeout=300, **here)  # type: ignore[call-overload]
        finally:
            poc = {"NVFLARE_POC_WORKSPACE": str(tmp_path / "poc")}
            flare.run("nvflare", "poc", "stop", env=poc, check=False, timeout=120)
            kill_all_of(tmp_path / "poc")
        said.seek(0)
        text = said.read()
    assert typed.returncode == 0, text
    assert re.search(r"lifetime +zcdp +ε at δ = 1e-06 +4 +1\.806", text), text
    assert "FINISHED:COMPLETED" in text
