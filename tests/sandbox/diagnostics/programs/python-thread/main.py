import sys
import threading


def work():
    raise RuntimeError("worker died")


thread = threading.Thread(target=work)
thread.start()
thread.join()
sys.exit(3)
