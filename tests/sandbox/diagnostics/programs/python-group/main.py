def main():
    raise ExceptionGroup("two queries failed", [ValueError("orders"), KeyError("lines")])


main()
