"""Nothing in the library changes the state of the process: several threads may be inside it at any time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LIBRARY = ("accountant", "plugins")
"""The folders whose code runs in the threads of other programs."""
CALLS = {
    *("redirect_stdout", "redirect_stderr", "chdir", "umask", "setlocale", "tzset", "putenv", "unsetenv"),
    *("filterwarnings", "simplefilter", "catch_warnings", "resetwarnings", "captureWarnings", "basicConfig"),
    *("seterr", "seterrcall", "seed", "set_state", "setcontext", "setrecursionlimit", "set_int_max_str_digits"),
    *("signal", "setitimer", "alarm", "sigaction", "setdefaulttimeout", "setrlimit", "setswitchinterval"),
    *("settrace", "setprofile", "stack_size", "set_start_method", "set_event_loop_policy", "reload", "freeze"),
    *("seteuid", "setegid", "setuid", "setgid", "nice", "rcdefaults"),
}
STATE = {
    *("sys.stdout", "sys.stderr", "sys.stdin", "sys.argv", "sys.path", "sys.excepthook", "sys.unraisablehook"),
    *("sys.modules", "sys.dont_write_bytecode", "os.environ", "threading.excepthook", "tempfile.tempdir"),
}


def changes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the lines and names of what changes the state of the process."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
            if name in CALLS and not owner.startswith(("self", "rng", "generator")):
                yield node.lineno, name
            if owner in STATE and name in {"insert", "append", "extend", "remove", "update", "pop", "setdefault"}:
                yield node.lineno, owner
        targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else []
        if isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            named = target.value if isinstance(target, ast.Subscript) else target
            if ast.unparse(named) in STATE or ast.unparse(named).startswith("getcontext()"):
                yield node.lineno, ast.unparse(named)


@pytest.mark.slow
def test_library_changes_no_state_of_the_process() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for folder in LIBRARY
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, what in changes(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []
