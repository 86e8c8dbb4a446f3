"""The npm package: it type-checks, it is small, and what is packed can be installed and run."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from case_files import case_text
from client_cases import CASES
from javascript import PACKAGE, node
from ldp_budget.registry.collections import Collection

pytestmark = pytest.mark.exhaustive

MOST_BYTES = {"ldp-budget": 12_300, "ldp-budget-device": 19_800, "ldp-budget-loss": 17_600}
"""Of each file, compressed."""


def npm(folder: Path, *words: str) -> str:
    found = shutil.which("npm")
    if found is None:
        pytest.skip("no npm on this machine")
    done = subprocess.run([found, *words], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert not done.returncode, f"npm {' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with what its developers need."""
    copy = tmp_path_factory.mktemp("package") / "js"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("node_modules", "dist"))
    npm(copy, "install", "--no-audit", "--no-fund", "--no-package-lock")
    return copy


@pytest.fixture(scope="module")
def built(package: Path) -> dict[str, dict[str, Any]]:
    """Return the output of the build for each of its files."""
    lines = map(json.loads, npm(package, "run", "--silent", "build").splitlines())
    return {each["file"]: each for each in lines}


def test_package_passes_strict_type_checks(package: Path) -> None:
    npm(package, "run", "check")


def test_types_in_the_tree_are_those_of_the_sources(package: Path) -> None:
    """Record them again: `npm install && npm run types` in `clients/js`."""
    kept = {path.name: path.read_text(encoding="utf-8") for path in (PACKAGE / "types").glob("*.d.ts")}
    shutil.rmtree(package / "types")
    npm(package, "run", "types")
    made = {path.name: path.read_text(encoding="utf-8") for path in (package / "types").glob("*.d.ts")}
    assert kept == made


def test_device_budget_without_indexed_db_says_what_it_needs(package: Path) -> None:
    code = """
    import { DeviceBudget } from "./src/budget.js";
    await DeviceBudget.open({ lifetime: "4" }).catch((error) => console.log(error.name, error.message));
    """
    done = subprocess.run(
        ["node", "--input-type=module", "-e", code], cwd=package, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == (
        "TypeError DeviceBudget needs IndexedDB, and there is none here. In a browser, use it in a page or a worker. In "
        "Node.js, pass a store that keeps its data: { indexedDB }.\n"
    )


def test_package_build_is_small_and_prints_its_digest(built: dict[str, dict[str, Any]]) -> None:
    sizes = {file: each["compressed"] for file, each in built.items()}
    most = {f"dist/{name}.js": size for name, size in MOST_BYTES.items()}
    assert sizes.keys() == most.keys()
    assert not [file for file, size in sizes.items() if size > most[file]]
    assert all(each["integrity"].startswith("sha384-") for each in built.values())


MOST_BYTES_OF_ROADS = 12 * 1024
"""What the two roads add to a page that has the client, the budget and the outbox, compressed."""

ROADS = """
    import { gzipSync } from "node:zlib";
    import { build } from "esbuild";
    const own = /(telemetry|telemetry_sdks|surveyjs)\\.js$/;
    const resolve = ({ path }) => (own.test(path) ? undefined : { path, external: true });
    const plugins = [{ name: "others", setup: (building) => building.onResolve({ filter: /^\\./ }, resolve) }];
    for (const name of ["telemetry", "surveyjs"]) {
        const entryPoints = [`./src/${name}.js`];
        const { outputFiles } = await build({ entryPoints, bundle: true, format: "esm", minify: true, write: false, plugins });
        console.log(gzipSync(outputFiles[0].contents, { level: 9 }).length);
    }
"""


def test_roads_add_little_to_a_page(package: Path) -> None:
    (package / "roads.mjs").write_text(ROADS)
    done = subprocess.run([node(), "roads.mjs"], cwd=package, capture_output=True, text=True, timeout=60, check=False)
    assert not done.returncode, done.stderr
    sizes = [int(line) for line in done.stdout.split()]
    assert len(sizes) == 2
    assert 2000 < sum(sizes) <= MOST_BYTES_OF_ROADS


@pytest.mark.usefixtures("built")
def test_package_build_draws_and_explains_as_its_sources(package: Path) -> None:
    """Names are shortened when it is built; no definition, page or other file may miss one of them."""
    definitions = [Collection(name.replace(" ", "-"), made).definition() for name, made in CASES.items()]
    script = f"""
        const definitions = {json.dumps(definitions)};
        const said = [];
        for (const file of ["src/index.js", "dist/ldp-budget.js"]) {{
            const {{ Client }} = await import(`./${{file}}`);
            let state = 1;
            const getRandomValues = (bytes) => {{
                for (let i = 0; i < bytes.length; i++) bytes[i] = (state = (state * 48271) % 2147483647) >> 8;
            }};
            Object.defineProperty(globalThis, "crypto", {{ value: {{ getRandomValues }}, configurable: true }});
            const secret = Uint8Array.from({{ length: 32 }}, (_, i) => i);
            said.push(JSON.stringify(definitions.map((definition) => {{
                const client = new Client(definition);
                const answer = definition.input.kind === "number" ? Number(definition.input.upper) : 1;
                const report = client.randomize(answer, {{ secret }});
                // These two are asked for by the other file.
                const read = client.program.read(client.numbered(answer));
                const told = Number(definition.input.count) <= 10 && client.explain(report)?.slice(0, 3);
                return [read, [...report], client.label(answer, secret), told, client.memoises];
            }})));
        }}
        console.log(said[0] === said[1], said[0].length);
    """
    (package / "both.mjs").write_text(script)
    done = subprocess.run([node(), "both.mjs"], cwd=package, capture_output=True, text=True, timeout=120, check=False)
    assert not done.returncode, done.stderr
    agree, length = done.stdout.split()
    assert agree == "true"
    assert int(length) > 50 * len(CASES)


def test_package_archive_can_be_installed_and_runs(package: Path, tmp_path: Path) -> None:
    (packed,) = json.loads(npm(package, "pack", "--json", "--pack-destination", str(tmp_path)))
    names = {file["path"] for file in packed["files"]}
    assert {"package.json", "README.md", "LICENSE", "src/index.js", "src/budget.js", "types/index.d.ts"} <= names
    assert not [name for name in names if name.startswith(("test/", "dist/", "node_modules/"))]
    (tmp_path / "package.json").write_text("{}")
    npm(tmp_path, "install", "--no-audit", "--no-fund", "--offline", packed["filename"])
    definition = Collection("party", CASES["sue"], ("a", "b", "c", "d", "e")).definition()
    script = f"""
        import {{ Client }} from "ldp-budget";
        import {{ unitsOf }} from "ldp-budget/budget";
        const report = new Client({json.dumps(definition)}).randomize("c");
        console.log(report.length, unitsOf("0.1", true));
    """
    (tmp_path / "run.mjs").write_text(script)
    done = subprocess.run([node(), "run.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "1 100000000\n"


# -- type declarations -----------------------------------------------------------------------------------------------

TYPED = case_text("integration_package.typed.ts")


@pytest.fixture(scope="module")
def installed(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in TypeScript that installed the packed package."""
    folder = tmp_path_factory.mktemp("typed")
    (packed,) = json.loads(npm(package, "pack", "--json", "--pack-destination", str(folder)))
    (folder / "package.json").write_text('{"type": "module"}')
    npm(folder, "install", "--no-audit", "--no-fund", "--offline", packed["filename"])
    return folder


OPTIONS = {"noEmit": True, "strict": True, "module": "nodenext", "lib": ["es2022", "dom"], "types": []}


def compiled(package: Path, folder: Path, *programs: str) -> subprocess.CompletedProcess[str]:
    """Check the types of programs in a project, `0.ts` and so on, and those of the declarations that they import."""
    names = [f"{number}.ts" for number in range(len(programs))]
    for name, program in zip(names, programs, strict=True):
        (folder / name).write_text(program)
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS, "files": names}))
    command = [node(), str(package / "node_modules" / "typescript" / "bin" / "tsc"), "-p", "."]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_types_accept_a_program_in_typescript(package: Path, installed: Path) -> None:
    done = compiled(package, installed, TYPED)
    assert (done.returncode, done.stdout) == (0, "")


ROAD_TYPES = """
import { DeviceBudget } from "ldp-budget/budget";
import { Outbox } from "ldp-budget/outbox";
import { protect } from "ldp-budget/surveyjs";
import { Reports, forLogs, forOpenFeature, forPostHog, forSnowplow, forSpans } from "ldp-budget/telemetry";
declare const definition: unknown, survey: object, sdk: { capture: Function }, track: () => void, processor: object;
const reports: Reports = await Reports.open({
    budget: { lifetime: "4", day: "1" },
    name: "metrics",
    metrics: { plan: { property: "plan", definition, original: "strip", allow: ["page"], period: "week", none: "none" } },
});
forPostHog(reports, () => sdk);
forSnowplow(reports, { schema: "iglu:a/b/jsonschema/1-0-0", track }).filter({});
forOpenFeature(reports, async ({ report, key }) => void (report + key));
forSpans(reports, processor, console.log).shutdown();
forLogs(reports, processor, console.log).forceFlush();
const outbox = new Outbox(await DeviceBudget.open({ lifetime: "4" }));
const { names } = protect(survey, { definition, digest: "0", outbox, key: "may" });
const first: string = names[0];
"""


def test_types_accept_roads_and_refuse_their_mistakes(package: Path, installed: Path) -> None:
    wrong = [
        ROAD_TYPES.replace('"week"', '"hour"'),
        ROAD_TYPES.replace('key: "may"', "seed: 1"),
        ROAD_TYPES.replace("schema:", "scheme:"),
    ]
    done = compiled(package, installed, ROAD_TYPES, *wrong)
    refused = {line.partition("(")[0] for line in done.stdout.splitlines() if ": error TS" in line}
    assert refused == {"1.ts", "2.ts", "3.ts"}, done.stdout


MISTAKES = {
    "const report: Uint8Array": "const report: string",
    'lifetime: "4"': "lifetime: 4",
    "new Outbox(budget)": "new Outbox(client)",
    "client.label(answer, secret)": "client.label(answer)",
    'from "ldp-budget/loss"': 'from "ldp-budget/src/loss.js"',
}


def test_types_refuse_programs_with_a_mistake(package: Path, installed: Path) -> None:
    assert all(right in TYPED for right in MISTAKES)
    done = compiled(package, installed, *(TYPED.replace(right, wrong, 1) for right, wrong in MISTAKES.items()))
    refused = {line.partition("(")[0] for line in done.stdout.splitlines() if ": error TS" in line}
    assert refused == {f"{number}.ts" for number in range(len(MISTAKES))}
