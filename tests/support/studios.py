"""A studio in a test: entered in this process, without a server; forms are sent as a browser sends them."""

from __future__ import annotations

import re
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from doublure.studio.project import FILE, Project

TOKEN = "a-token-of-a-test"
ORIGIN = "http://127.0.0.1:8600"


class StudioClient:
    """A browser's requests, with cookie and origin.

    Args:
        folder: The project's folder.
    """

    def __init__(self, folder: Path) -> None:
        pytest.importorskip("starlette")
        pytest.importorskip("httpx2")
        from starlette.testclient import TestClient

        from doublure.studio.app import studio_app
        from doublure.studio.folder import ProjectFolder
        from doublure.studio.visit import Studio

        self.studio = Studio(ProjectFolder(folder))
        self.app = studio_app(self.studio, token=TOKEN)
        self.http = TestClient(self.app, base_url=ORIGIN, raise_server_exceptions=True)
        assert self.http.get(f"/?token={TOKEN}").status_code == 200

    def copied(self, folder: Path) -> StudioClient:
        """Return a studio of another folder that is where this one is, with all that can be undone."""
        shutil.copytree(self.studio.root, folder, dirs_exist_ok=True)
        other = StudioClient(folder)
        other.studio._before = [*self.studio._before]
        other.studio.status = self.studio.status
        return other

    @property
    def project(self) -> Project:
        """The project as it lies on the disk, which is what the studio goes by."""
        found = self.studio.project
        path = self.studio.folder.path(FILE)
        assert not path.exists() or found == Project.load(path)
        return found

    def get(self, address: str, **more: Any) -> Any:
        """Return the answer to a GET."""
        return self.http.get(address, **more)

    def post(self, address: str, *, version: int | None = None, files: Any = None, **fields: Any) -> Any:
        """Return the answer to a form, after the redirect; with the current version unless another is given."""
        fields["version"] = str(self.project.version if version is None else version)
        return self.http.post(address, data=fields, files=files, headers={"origin": ORIGIN})


def said_again(answer: Any, name: str) -> dict[str, str]:
    """Return the form of a page, as a browser sends it when nothing is changed.

    Args:
        answer: The page.
        name: Where the form goes to, without what stands behind a question mark.
    """
    form = re.split(rf'action="{name}[?"]', answer.text)[1].split("</form>")[0]
    found = {}
    for tag in re.findall(r"<input[^>]*>", form):
        kind, field = re.search(r'type="(\w+)"', tag), re.search(r'name="([^"]*)"', tag)
        ticked = kind is None or kind[1] not in ("radio", "checkbox") or " checked" in tag
        if field and ticked and field[1] != "version":
            found[field[1]] = unescape((re.search(r'value="([^"]*)"', tag) or ["", ""])[1])
    for field, body in re.findall(r'<textarea id="[^"]*" name="([^"]*)"[^>]*>(.*?)</textarea>', form, re.DOTALL):
        found[field] = unescape(body)
    for field, body in re.findall(r'<select id="[^"]*" name="([^"]*)".*?>(.*?)</select>', form, re.DOTALL):
        options = re.findall(r'<option(?: value="([^"]*)")?( selected)?>([^<]*)', body)
        value, _, text = next((each for each in options if each[1]), options[0])
        found[field] = unescape(value or ("" if "value=" in body else text))
    return found
