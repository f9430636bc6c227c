"""What runs inside a box: pid 1 (``main``), a supervisor for each process or shell session, workers for files.

Only the standard library, and of it only what starts in under a millisecond: ``json``, ``socket``, ``signal``,
``pathlib`` and ``typing`` pull in ``re`` and ``enum``, which double the start of the interpreter (measured: 27 against
14 ms), so the C modules below them are used. Everything here is copied into the kit (see
``sandbox.local.runtime.kit``) and must import relatively.
"""
