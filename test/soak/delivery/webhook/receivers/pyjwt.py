import base64
import json
import os
import ssl
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt

machine = time.monotonic


def ahead():
    """The clock by which PyJWT keeps the key set: ahead of the machine's by the milliseconds in a file."""
    with open(os.environ["CLOCK"]) as file:
        return machine() + float(file.read()) / 1000


time.monotonic = ahead
hub, port = os.environ["HUB"], int(os.environ["PORT"])
audience = f"https://localhost:{port}/"
client = jwt.PyJWKClient(hub + "/.well-known/jwks.json")


def verify(token):
    key = client.get_signing_key_from_jwt(token)
    jwt.decode(token, key.key, algorithms=["RS256"], audience=audience, issuer=hub)


class Receiver(BaseHTTPRequestHandler):
    """Answers pushes as service.md §5.6 says: 201, and 204 for an invalid token. Prints both."""

    def do_POST(self):
        push = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        title = json.loads(base64.b64decode(push["message"]["data"]))["title"]
        token = self.headers["Authorization"].replace("Bearer ", "")
        kid = jwt.get_unverified_header(token)["kid"]
        status = 201
        try:
            verify(token)
            print("taken", kid, title, flush=True)
        except Exception as error:
            status = 204
            print("refused", kid, title, repr(error), flush=True)
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(os.environ["CERT"], os.environ["KEY"])
server = ThreadingHTTPServer(("127.0.0.1", port), Receiver)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print("listening", flush=True)
server.serve_forever()
