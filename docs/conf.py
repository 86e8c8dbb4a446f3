"""The site made of these pages: `sphinx-build -W --keep-going -n docs build/site`. They read well without it, too."""

import tomllib
from pathlib import Path

_about = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
project, release = _about["name"], _about["version"]

extensions = ["myst_parser"]
exclude_patterns = ["README.md"]  # index.md has it

# Links to headings are as GitHub makes them, down to the deepest of the commands.
myst_heading_anchors = 4

smartquotes = False

html_theme = "furo"
html_title = f"{project} {release}"
html_use_index = False
html_copy_source = False
html_show_copyright = False
