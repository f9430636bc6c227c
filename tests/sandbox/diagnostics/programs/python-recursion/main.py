def deeper(level):
    return deeper(level + 1) + 1


deeper(0)
