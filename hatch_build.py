"""The long description of the package, made of README.md so that it can be read away from the repository.

A link to a file of the repository leads nowhere on an index of packages. Where ``[project.urls]`` names the repository
as ``Source``, such links and pictures become absolute; where it does not, a link becomes its words, and a picture goes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def described(text: str, source: str | None) -> str:
    """Return Markdown without relative links.

    Args:
        text: Of README.md.
        source: Where the files of the repository are, such as https://host/owner/name/blob/main; None if not known.
    """

    def linked(found: re.Match[str]) -> str:
        picture, words, target = found.groups()
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        if source is not None:
            return f"{picture}[{words}]({source.rstrip('/')}/{target})"
        return "" if picture else words

    text = re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", linked, text)
    return re.sub(r"\n{3,}", "\n\n", text)


class LongDescription(MetadataHookInterface):
    """Fills in ``project.readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the long description."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {"content-type": "text/markdown", "text": described(text, source)}
