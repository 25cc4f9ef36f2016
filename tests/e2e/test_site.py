"""The site of the pages: that all of it is there as it is written, and that each link on it leads somewhere."""
import html.parser
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
from urllib.parse import unquote, urlsplit

from pages import DOCS, ROOT

# The parts of a page, by its lines in Markdown and by its marks on the site.
PARTS = {"pre": r"^ *```\w+$|^ *```$", "table": r"^ *\|(?: *:?-+:? *\|)+$", "li": r"^ *(?:[-*]|\d+\.) ",
         "h1": r"^# ", "h2": r"^## ", "h3": r"^### "}


class Page(html.parser.HTMLParser):
    """The content of a page of the site, and of the written part of it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.names, self.parts = [], [], set(), dict.fromkeys(PARTS, 0)
        self.depth = 0  # Within the written part.
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.names |= {given[key] for key in ("id", "name") if key in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag in ("img", "script", "link", "iframe", "source") and (given.get("src") or given.get("href")):
            self.loads.append(given.get("src") or given["href"])
        if tag == "div":
            self.depth += 1 if self.depth or given.get("role") == "main" else 0
        elif self.depth and tag in self.parts:
            self.parts[tag] += 1

    def handle_endtag(self, tag):
        if tag == "div" and self.depth:
            self.depth -= 1


def parts_of(markdown):
    """The number of each part in the text; a part within a block does not count."""
    counts, fence = dict.fromkeys(PARTS, 0), False
    counts["pre"] += len(re.findall(r"^[^ ].*\n\n {4}", re.sub(r"^ *```.*?^ *```$", "", markdown, flags=re.S | re.M), re.M))
    for line in markdown.splitlines():
        if re.match(r" *```", line):
            counts["pre"] += not fence
            fence = not fence
        elif not fence:
            for part, pattern in PARTS.items():
                counts[part] += part != "pre" and bool(re.match(pattern, line))
    return counts


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-site-"))
        cls.addClassCleanup(shutil.rmtree, cls.place)
        cls.built = subprocess.run(["mkdocs", "build", "--strict", "-f", ROOT / "mkdocs.yml", "-d", cls.place],
                                   capture_output=True, text=True, timeout=240)
        cls.pages = {path.relative_to(cls.place): Page(path) for path in cls.place.rglob("*.html")}

    def test_is_made_without_a_warning_and_every_page_is_in_its_list(self):
        self.assertEqual(self.built.returncode, 0, self.built.stderr)
        self.assertNotRegex(self.built.stderr, "WARNING|ERROR|not included in the \"nav\"")

    def test_has_every_page_with_all_its_parts(self):
        for source in sorted(DOCS.rglob("*.md")):
            with self.subTest(source.name):
                page = self.pages[source.relative_to(DOCS).with_suffix(".html")]
                self.assertEqual(page.parts, parts_of(source.read_text()))

    def test_every_link_on_it_leads_to_a_place_that_is_there(self):
        self.assertGreater(len(self.pages), 30)
        for name, page in self.pages.items():
            for link in page.links + page.loads:
                parts = urlsplit(link)
                if parts.scheme or parts.netloc or (name.name == "404.html" and link.startswith("/")):
                    continue
                with self.subTest(page=str(name), link=link):
                    target = (self.place / name.parent / unquote(parts.path)).resolve() if parts.path else self.place / name
                    self.assertTrue(target.is_file())
                    if parts.fragment and target.suffix == ".html":
                        self.assertIn(unquote(parts.fragment), self.pages[target.relative_to(self.place.resolve())].names)

    def test_loads_nothing_from_elsewhere(self):
        for name, page in self.pages.items():
            for load in page.loads:
                self.assertEqual(urlsplit(load).netloc, "", f"{name}: {load}")
        for style in self.place.rglob("*.css"):
            self.assertNotRegex(style.read_text(), r"url\(\s*['\"]?(?:https?:)?//|@import")
