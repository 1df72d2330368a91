"""The documentation site: Sphinx, MyST and furo. `make docs` builds it into out/site, without the network."""

import re
import sys
from pathlib import Path

from pygments.lexer import RegexLexer, bygroups, using
from pygments.lexers.shell import BashLexer
from pygments.token import Generic
from sphinx.application import Sphinx

import voxpop

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from tools.palette import palette  # noqa: E402
from tools.reference import with_public_names  # noqa: E402

NAMED_PAGE = re.compile(r"`{0,2}docs/((?:privacy|guides|design|advisories)/[\w-]+)\.md`{0,2}")

project = "Voxpop"
author = "The Voxpop developers"
project_copyright = author
release = version = voxpop.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_static", "**/.ipynb_checkpoints"]

# Pages read the same here and on a code host: headings are link targets, and files outside docs/ can be linked.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nb_merge_streams = True
nb_execution_mode = "off"  # a test runs the notebook where the data exist; the site shows the saved outputs

# A link without a target is an error of the page. Types of other libraries and private names have no page here.
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(?!voxpop\.\w+$).*")]

autodoc_member_order = "bysource"
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]
default_role = "code"
add_module_names = False
python_use_unqualified_type_names = True

copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

html_theme = "furo"
html_title = "Voxpop"
html_static_path = ["_static"]
html_css_files = ["voxpop.css"]
html_search_scorer = str(DOCS / "_static" / "scorer.js")
html_favicon = "_static/voxpop.svg"
html_logo = "_static/voxpop.svg"
html_show_sphinx = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
html_theme_options = {
    f"{theme}_css_variables": dict.fromkeys(("color-brand-primary", "color-brand-content"), palette(theme)["accent"])
    for theme in ("light", "dark")
}


class ConsoleLexer(RegexLexer):
    """Commands after `$ `, continued after a backslash; all other text is their output, including brackets."""

    name = "Voxpop console"
    tokens = {  # noqa: RUF012
        "root": [
            (r"(\$ )((?:[^\n]*\\\n)*[^\n]*\n?)", bygroups(Generic.Prompt, using(BashLexer))),
            (r"[^\n]*\n|[^\n]+", Generic.Output),
        ]
    }


def list_public_names(app: Sphinx, page: str, source: list[str]) -> None:
    """Replace the markers of the reference by the public names of their modules."""
    source[0] = with_public_names(source[0])


def without_tables(app, what, name, obj, options, lines) -> None:
    """Omit the tables of files in the docstrings of packages, which are for readers of the code."""
    if what == "module":
        lines[:] = [line for line in lines if not line.startswith("|")]


def with_links(app, what, name, obj, options, lines) -> None:
    """Link the proofs and guides that docstrings name as files."""
    lines[:] = [NAMED_PAGE.sub(r":doc:`\1 </\1>`", line) for line in lines]


def setup(app: Sphinx) -> None:
    """Connect the generated reference, and a lexer that does not mistake output for a prompt."""
    app.connect("autodoc-process-docstring", without_tables)
    app.connect("autodoc-process-docstring", with_links)
    app.add_lexer("console", ConsoleLexer)
    app.connect("source-read", list_public_names)
