class OrderError(Exception):
    pass


def load(number):
    try:
        return {1: "Anna"}[number]
    except KeyError as error:
        fault = OrderError(f"no order {number}\nasked for by main")
        fault.add_note("orders start at 1")
        raise fault from error


load(2)
