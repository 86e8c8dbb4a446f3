"""The wire format of the service: request and response schemas, and problem details (RFC 9457).

The service and the client both use it, so that they cannot differ. It may import the accounting and every room below,
and neither the client nor a package for HTTP.
"""
