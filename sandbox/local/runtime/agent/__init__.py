"""What runs inside a box: pid 1 (``main``), a supervisor for each process or shell session, workers for files.

Only the standard library, and of it only what starts in under a millisecond: ``json``, ``socket`` and ``signal`` pull in
``re`` and ``enum``, which double the start of the interpreter (measured: 14 against 27 ms), so the C modules below them
are used; ``typing`` is kept out of the way of the interpreter too. Everything here is copied into the kit (see ``sandbox.local.runtime.kit``) and must import relatively.
"""
