import logging
import sys
import traceback

try:
    1 / 0
except ZeroDivisionError:
    logging.exception("handled")
    traceback.print_exc()
print('  File "main.py", line 1', file=sys.stderr)
print("still running: Main.java:3: error: no", file=sys.stderr)
raise LookupError("the real one")
