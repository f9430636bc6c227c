def first(lines):
	if lines:
        return lines[0]
