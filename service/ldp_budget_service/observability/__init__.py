"""How the service is: its health, its figures, its log. Nothing in there says whose budget was asked about."""
