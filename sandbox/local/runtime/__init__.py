"""How boxes are isolated."""
