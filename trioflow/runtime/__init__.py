"""The Trio shell: engine, instance hosts, committer, timers, messages, recovery."""
