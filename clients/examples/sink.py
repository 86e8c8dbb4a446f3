"""Serve the folder and append what its pages send to `sent.txt`, in place of a server of your own: `python ../sink.py 5180`."""

import sys
from base64 import b64decode
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote_to_bytes


class Sink(SimpleHTTPRequestHandler):
    """Files as they are; any POST is kept."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if body.startswith(b"data="):  # as PostHog sends what is left when a page ends
            body = b64decode(unquote_to_bytes(body[5:]))
        with open("sent.txt", "ab") as file:
            file.write(body + b"\n")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b"{}")


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Sink).serve_forever()
