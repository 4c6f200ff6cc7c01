"""``trioflow demo``: an order process whose worker is killed in the middle, and goes on.

Two processes: the *coordinator* is what the user started; it shows what happens, kills and starts again.  The *worker*
holds the engine.  They speak in JSON lines over the worker's standard input and output.
"""
