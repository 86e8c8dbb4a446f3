"""Commands of a service: start it, and manage its API keys and invitations. Entry points name them for the command line."""
