import json

document = '{"count": 1,}'
json.loads(document)
