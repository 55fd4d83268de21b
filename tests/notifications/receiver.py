"""A receiver of webhooks on this machine that keeps what it was sent and answers as configured."""

import base64
import contextlib
import hmac
import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Message:
    """One request as it arrived."""

    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)

    def signed_by(self, secret: str) -> bool:
        """Check the signature as the Standard Webhooks specification says."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        stamp = self.headers["webhook-timestamp"]
        content = f"{self.headers['webhook-id']}.{stamp}.".encode() + self.body
        wanted = base64.b64encode(hmac.digest(key, content, "sha256")).decode()
        return self.headers["webhook-signature"] == f"v1,{wanted}"


@dataclass
class Receiver:
    """What came, and what is answered: statuses one after the other, the last one stays."""

    address: str
    statuses: list[int] = field(default_factory=lambda: [204])
    location: str = ""
    came: list[Message] = field(default_factory=list)


@contextlib.contextmanager
def receiving() -> Iterator[Receiver]:
    """Start a receiver."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.came.append(Message({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(receiver.statuses.pop(0) if len(receiver.statuses) > 1 else receiver.statuses[0])
            if receiver.location:
                self.send_header("Location", receiver.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(f"http://127.0.0.1:{server.server_address[1]}/hook?token=in-the-address")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield receiver
    server.shutdown()
    server.server_close()
