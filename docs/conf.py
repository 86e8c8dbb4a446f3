"""The site made of these pages: `sphinx-build -W --keep-going -n docs build/site`.

GitHub shows the pages too, except those of the Python reference, which Sphinx fills in from the docstrings.
"""

import re
import sys
import tomllib
from pathlib import Path

_here = Path(__file__).resolve().parent
sys.path[:0] = [str(_here / "reference"), str(_here)]

_about = tomllib.loads((_here.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
project, release = _about["name"], _about["version"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "reference_pages.docstrings",
    "site_parts.mathml",
    "site_parts.search",
    "site_parts.sidebar",
    "site_parts.signatures",
]
exclude_patterns = [
    "README.md",  # index.md has it
    "reference/examples",  # the Python reference shows them
]

# Formulas between dollars, as GitHub reads them, typeset by the browser.
myst_enable_extensions = ["attrs_inline", "dollarmath"]
myst_dmath_allow_labels = False
myst_dmath_allow_space = False
myst_dmath_allow_digits = False
html_math_renderer = "mathml"

# The button copies what a reader types: without prompts, and without the output below them.
copybutton_prompt_text = r"\$ |> |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

# Links to headings are as GitHub makes them, down to the deepest of the commands.
myst_heading_anchors = 4

smartquotes = False

autodoc_member_order = "bysource"
autodoc_preserve_defaults = False
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False
html_static_path = ["site_parts/static"]
html_css_files = ["site.css"]
html_search_scorer = str(_here / "site_parts" / "search_ranks.js")
html_show_copyright = False

# Pages of the site whose text is a file next to this folder.
_OF_THE_REPOSITORY = {name.lower(): f"{name}.md" for name in ("SECURITY", "CHANGELOG", "CONTRIBUTING")}
_LINK = re.compile(rf"\]\(((?:\.\./)*)\.\./({'|'.join(map(str.upper, _OF_THE_REPOSITORY))})\.md")


def _read_from_repository(app, docname, source):
    """Replace the text of such a page, with its links as they are from this folder."""
    if docname in _OF_THE_REPOSITORY:
        text = (_here.parent / _OF_THE_REPOSITORY[docname]).read_text(encoding="utf-8")
        for name, file in _OF_THE_REPOSITORY.items():
            text = text.replace(f"]({file}", f"]({name}.md")
        source[0] = text.replace("](docs/", "](")
    # On GitHub these links leave the folder of the site; here its own pages have those texts.
    source[0] = _LINK.sub(lambda found: f"]({found[1]}{found[2].lower()}.md", source[0])


def setup(app):
    app.connect("source-read", _read_from_repository)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
