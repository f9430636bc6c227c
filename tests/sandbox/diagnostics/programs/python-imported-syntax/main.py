import importlib

importlib.import_module("broken")
