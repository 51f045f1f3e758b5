"""A studio in a test: entered in this process, without a server; forms are sent as a browser sends them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from doublure.studio.project import Project

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

    @property
    def project(self) -> Project:
        """The project as it lies on the disk."""
        return self.studio.project

    def get(self, address: str, **more: Any) -> Any:
        """Return the answer to a GET."""
        return self.http.get(address, **more)

    def post(self, address: str, *, version: int | None = None, files: Any = None, **fields: Any) -> Any:
        """Return the answer to a form, after the redirect; with the current version unless another is given."""
        fields["version"] = str(self.project.version if version is None else version)
        return self.http.post(address, data=fields, files=files, headers={"origin": ORIGIN})
