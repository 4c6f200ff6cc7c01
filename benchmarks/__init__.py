"""What trioflow costs, each figure beside its floor: the same work in plain Trio, sqlite3 or lxml."""
