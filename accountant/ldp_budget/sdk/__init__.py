"""What an author of a mechanism builds on: the base class, its fields and its domain, exact channels, estimates."""
