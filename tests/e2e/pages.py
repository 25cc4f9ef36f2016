"""The pages and their blocks, for the tests that try them as they are written.

A block that cannot be tried has a comment before it that says why: <!-- not run: ... -->
"""
import pathlib
import re
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# The languages whose blocks are all tried, or say why not.
TRIED = ("sh", "yaml", "python", "cpp", "cmake", "sql", "console")


def pages():
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *sorted(DOCS.glob("*.md"))]


def all_blocks(page):
    """Each block: its language, its text, and whether it is tried."""
    found = re.findall(r"^(<!-- not run: [^\n]+ -->\n)? *```(\w*)\n(.*?)^ *```$", page.read_text(), re.S | re.M)
    return [(language, textwrap.dedent(text), not marker) for marker, language, text in found]


def blocks(page, language):
    """The blocks of a page in this language, but for those that say why they are not tried."""
    return [text for name, text, tried in all_blocks(page) if name == language and tried]
