"""``trioflow run``: one process from its start to its end, with answers from a file or from the prompt."""
