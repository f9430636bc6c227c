def total(order):
    return sum(line["price"] * line["quantity"] for line in order["lines"])
