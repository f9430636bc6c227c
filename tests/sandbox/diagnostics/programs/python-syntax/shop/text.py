print("žluťoučký", 'not closed)
