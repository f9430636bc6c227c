line = "0123456789abcdef" * 4
number = 0
while True:
    print(number, line)
    number += 1
