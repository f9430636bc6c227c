customers = {1: "Anna"}


def name_of(customer):
    return customers[customer]


print(name_of(1))
print(name_of(2))
