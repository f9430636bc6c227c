import time

print("waiting for an order that never comes", flush=True)
while True:
    time.sleep(0.1)
