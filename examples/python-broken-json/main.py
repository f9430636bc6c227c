import os
from pathlib import Path

Path(os.environ["UOM_RESULT_FILE"]).write_text('{"orders": {"count": 3, "firstSample": ', encoding="utf-8")
print("stopped in the middle of the result")
