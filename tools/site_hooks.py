"""What mkdocs is told of the pages, which are written for a reader of the repository: hooks of mkdocs.yml.

Nothing is changed in the files. The pages are in GitHub's Markdown, and mkdocs reads an older one.
"""
import pathlib
import posixpath
import re

FENCE = re.compile(r"^( *)(```+)")
ITEM = re.compile(r"^ *(?:[-*]|\d+\.) ")


def on_config(config):
    """The decisions are those that are there: a new one need not be named twice. Headings are called as on GitHub."""
    folder = pathlib.Path(config["docs_dir"], "decisions")
    config["nav"].append({"Decisions": [f"decisions/{page.name}" for page in sorted(folder.glob("*.md"))]})
    config["mdx_configs"].setdefault("toc", {})["slugify"] = name_of_heading
    return config


def name_of_heading(heading, _):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def on_page_markdown(markdown, page, **_):
    text = "\n".join(in_older_words(markdown.split("\n")))
    return re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", lambda link: outside_as_text(link, page.file.src_uri), text)


def in_older_words(lines):
    """A list has an empty line before it, and a block within an item stands four columns to the right."""
    inside, in_list = None, False
    for line in lines:
        fence = FENCE.match(line)
        if inside is not None:
            yield shifted(line, inside)
            if fence:
                inside = None
                yield ""
        elif fence:
            inside = len(fence[1]) if in_list else 0
            yield ""
            yield shifted(line, inside)
        else:
            starts = bool(ITEM.match(line))
            if starts and not in_list:
                yield ""
            in_list = starts or (in_list and (line.startswith("  ") or not line))
            yield line


def shifted(line, columns):
    return "    " + line[columns:] if columns and line else line


def outside_as_text(link, page):
    """What lies outside of docs/ is no page of the site: its place in the repository is said instead."""
    text, target = link[1], link[2].partition("#")[0]
    place = posixpath.normpath(posixpath.join(posixpath.dirname(posixpath.join("docs", page)), target))
    if "://" in target or not target or place.startswith("docs/"):
        return link[0]
    return text if place in text else f"{text} (`{place}` of the repository)"
