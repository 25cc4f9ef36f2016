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
# The pages that test_guides.py tries, by their places in docs/.
GUIDES = ("install", "gpus", "waiting", "troubleshooting", "cookbook", "security", "glossary")
# Blocks that test_docs.py tries: those of the README, the programs in Python, and the queries of the journal. Those of
# machines are tried by test_agents.py and test_slurm.py.
TRIED_ELSEWHERE = {(ROOT / "README.md", *block) for block in (("yaml", 0), ("console", 0), ("console", 1), ("console", 2), ("python", 0), ("sh", 0))}
TRIED_ELSEWHERE |= {(DOCS / "journal.md", "sql", 0)} | {(DOCS / "python.md", "python", number) for number in range(2)}
TRIED_ELSEWHERE |= {(DOCS / "machines.md", language, number) for language, number in (*(("sh", number) for number in range(5)), *(("yaml", number) for number in range(5)))}


def guides():
    return [*(DOCS / f"{name}.md" for name in GUIDES), *sorted((DOCS / "coming-from").glob("*.md"))]


def pages():
    """The pages that test_blocks.py tries."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md",
            *(page for page in sorted(DOCS.glob("*.md")) if page not in guides())]


def all_blocks(page):
    """Each block: its language, its text, and whether it is tried."""
    found = re.findall(r"^(<!-- not run: [^\n]+ -->\n)? *```(\w*)\n(.*?)^ *```$", page.read_text(), re.S | re.M)
    return [(language, textwrap.dedent(text), not marker) for marker, language, text in found]


def blocks(page, language):
    """The blocks of a page in this language, but for those that say why they are not tried."""
    return [text for name, text, tried in all_blocks(page) if name == language and tried]
