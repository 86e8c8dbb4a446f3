"""Health checks, metrics, verifications and logs of the service. They never name the user of a request."""
