"""`deploy/`: the files of Compose and Kubernetes name what the image, the command line and the service have."""

from __future__ import annotations

import shlex
from typing import Any

import click
import pytest

from container_recipe import FINAL, ROOT, values

yaml = pytest.importorskip("yaml")
DEPLOY = ROOT / "deploy"


def documents() -> dict[str, dict[str, Any]]:
    """Each object of the manifests, by its kind."""
    paths = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    return {each["kind"]: each for path in paths for each in yaml.safe_load_all(path.read_text(encoding="utf-8"))}


OBJECTS = documents()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def pods() -> dict[str, dict[str, Any]]:
    job = OBJECTS["CronJob"]["spec"]["jobTemplate"]["spec"]
    return {"Deployment": OBJECTS["Deployment"]["spec"]["template"]["spec"], "CronJob": job["template"]["spec"]}


def parsed(words: list[str]) -> None:
    """Let the command line parse a command; raises for an option or a command that there is not."""
    from ldp_budget_cli.app import cli

    assert words[0] == "ldp-budget"
    command: Any = cli
    context = click.Context(cli)
    rest = words[1:]
    while isinstance(command, click.Group):
        found = command.get_command(context, rest[0])
        assert found is not None, rest[0]
        command, rest = found, rest[1:]
    command.make_context(command.name, [*rest], parent=context, resilient_parsing=True)


@pytest.mark.parametrize("kind", ["Deployment", "CronJob"])
def test_pod_runs_without_rights_as_the_user_of_the_image(kind: str) -> None:
    pod = pods()[kind]
    [user] = [line for line in values(FINAL, "RUN") if "useradd" in line]
    assert pod["securityContext"]["runAsNonRoot"]
    assert f"--uid {pod['securityContext']['runAsUser']}" in user
    [container] = pod["containers"]
    assert container["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    secret = set(OBJECTS["Secret"]["stringData"])
    assert {item["key"] for item in pod["volumes"][0]["secret"]["items"]} <= secret
    assert container["env"][0]["valueFrom"]["secretKeyRef"]["key"] in secret
    parsed(container["args"])


def test_compose_runs_the_service_as_the_image_does() -> None:
    services = COMPOSE["services"]
    assert {"database", "setup", "service", "prometheus", "grafana"} == set(services)
    assert services["service"]["read_only"]
    assert services["service"]["cap_drop"] == ["ALL"]
    parsed(services["service"]["command"])
    script = services["setup"]["command"][-1]
    lines = [shlex.split(line) for line in script.splitlines() if line.startswith("ldp-budget")]
    assert len(lines) == 3
    for line in lines:
        parsed(line)
