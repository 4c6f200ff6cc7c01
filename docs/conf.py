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
    (r"py:.*", r"(abc|collections|contextlib|datetime|decimal|enum|os|pathlib|typing|types|uuid)\..*"),
    (r"py:.*", r"(attr|attrs|cattrs|lxml|orjson|trio)\..*"),
    # Names that a module only knows while it is type-checked, and type variables: autodoc shows them bare.
    (r"py:class", r"FlowNode|SubProcess|On|Programs|Reason|Shell|Value|datetime"),
    (r"py:class", r"trioflow\..*\.(F|T|_Class|_Forwarding)"),
    # The inside of the engine and of an instance, which signatures name and no user makes.
    (
        r"py:class",
        r"trioflow\.(machine\.state|model\.builder\.document|runtime\.(definitions|shell)|values\.codec)\..*",
    ),
    # Without an index entry, because an `Expression` elsewhere is the model's.
    (r"py:class", r"trioflow\.expressions\.ports\.(Expression|Script)"),
    # The port of the stores, and what goes through it, are described where a store is added.
    (r"py:class", r"trioflow\.(stores\.port|checkpoint\.records)\..*"),
]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}

html_theme = "furo"
html_title = "trioflow"
