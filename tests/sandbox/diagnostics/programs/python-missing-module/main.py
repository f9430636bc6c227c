import pandas_of_old

print(pandas_of_old)
