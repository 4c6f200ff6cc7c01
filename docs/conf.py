"""How Sphinx builds the documentation."""

from __future__ import annotations

import importlib.metadata

project = "trioflow"
author = "The trioflow developers"
copyright = "The trioflow developers, Apache-2.0"  # noqa: A001 - Sphinx reads this name
release = importlib.metadata.version("trioflow")
version = ".".join(release.split(".")[:2])

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
nitpicky = True
nitpick_ignore_regex = [
    # Classes of other projects: their own documentation is not looked up, so that a build needs no network.
    (r"py:.*", r"(collections|contextlib|datetime|decimal|pathlib|typing|types|uuid)\..*"),
    (r"py:.*", r"(attr|attrs|cattrs|lxml|orjson|trio)\..*"),
]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}

html_theme = "furo"
html_title = "trioflow"
