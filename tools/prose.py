#!/usr/bin/python3
"""Checks the wording of the texts that a user reads first: `tools/prose.py [build/dev/src/cli/trainyard]`.

The texts are PAGES and, with a program, the help of it, of its commands and of TOPICS. A text is a paragraph, a list
item, a heading, a table cell, or the text of an option or command. Blocks of code are skipped. A code span, a URL and,
in a help, an option and text in single quotes become `: no word, no opener.

1. A sentence does not begin with a word of OPENERS. Allowed are a question that ends with '?', a heading or cell in the
   order of a question ("What does a run show"), "How to" on a page, "It" after another sentence of the same paragraph,
   "One" before a noun ("One task"; not "One that", "One is"), and the phrases of ALLOWED ("As soon as").
2. No word of WORDS is used: the table says what to write.
3. A sentence has at most 28 words (aim at 20) and one colon, a table cell at most 15 words. Numbers are no words. The
   bold label before a list item ("**Install**: ...") is a heading.
4. The text of an option, argument or command has at most 60 characters without "(default: x)", each of its lines at
   most 60 with it, `run --help` 50 lines of a terminal with 80 columns.

The exit code is 1 with findings. A sentence that several helps share is reported once.
"""
import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

PAGES = ("README.md", *(f"docs/{name}.md" for name in (
    "index", "install", "job-file", "gpus", "cookbook", "python", "coming-from/di-engine", "coming-from/fedflow", "coming-from/gflow",
    "coming-from/gnu-parallel", "coming-from/hydra", "coming-from/nvflare", "coming-from/ray", "coming-from/slurm",
    "coming-from/task-spooler", "coming-from/wandb")))
TOPICS = ("task-options",)  # Arguments of `trainyard help`. A program may have none.
SENTENCE_WORDS_MAX = 28
CELL_WORDS_MAX = 15
HELP_CHARACTERS_MAX = 60
PATIENCE_S = 60  # For a help, which comes in milliseconds.
RUN_HELP_LINES_MAX = 50
RUN_HELP_COLUMNS = 80

# (page or "help", part of the sentence, with ` for code): the reason. One that matches no finding is a finding.
EXCEPTIONS = {}

OPENERS = re.compile(r"(of|it|that|those|what|who|which|whether|how|one|the same|as|where|so)(?![\w-])", re.I)
ALLOWED = re.compile(r"(as (of|soon as|long as|far as|an?|root)|so far|where (possible|available|needed))\b", re.I)
QUESTION = re.compile(r"(what|who|where|how|which \w+) (do|does|did|is|are|was|were|can|will|should|must|has|have)\b", re.I)
ONE_NOUN = re.compile(r"one (?!(that|who|which|whose|is|has|was|can|may|must|with|for|in|on|at|by|to|of (them|these|those))\b)[\w`]", re.I)
SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\.\.\.)(?<!e\.g\.)(?<!i\.e\.)[)\"]?\s+(?=[A-Z`\"(]|trainyard\b)|$")
DEFAULT = re.compile(r"\s*\(default: ([^()]|\([^()]*\))*\)$")

# Words to avoid, and what to write instead.
WORDS = {re.compile(rf"\b(?:{pattern})\b", re.I): cure for pattern, cure in {
    r"tells?|told": "reports, notifies, prints; is notified, is reported",
    r"hears?|heard": "receives",
    r"look(s|ed|ing)? at": "samples, polls, reads",
    r"ask(s|ed|ing)? for": "requests",
    r"may have(?! (\w+ed|been)\b)|can give": "available, allocatable",
    r"(?<!` )(is|are|was|were|be) given|gets? (\w+ ){0,2}GPUs?": "is assigned, is allocated",
    r"promis(e|es|ed|ing)": "reservation, reserved",
    r"another try|tr(y|ies|ied)\b[^.;:]* again|tries(?! to\b)": "retry, is retried",
    r"anew": "starts over",
    r"(is|are|was|were|be) ended|(?<!the )ends? (it|them|all|one|a|the|your|tasks?|this|that)": "exits, is killed, is stopped",
    r"end(s|ed)? well": "succeeded, finished",
    r"at work": "is running",
    r"go(es|ing)? on|went on": "resumes, continues",
    r"(stands?|standing|stood) (in|on|at|by|behind|above|below|beneath|there|alone)": "is",
    r"(lie|lies|lay|lying) (in|on|at|under|there)": "is in",
    r"beside": "next to, alongside, concurrently with",
    r"strangers?|neighbou?rs?": "process of another user, another trainyard run",
    r"(the|for|by|of|to|that|from) others": "the other tasks, other processes",
    r"cards?": "GPU, MIG instance",
    r"teach(es)?|taught|what (is|was) learned": "learned estimates",
    r"wish(es)?|wanted": "request, requested",
    r"said by": "set by, from",
    r"said again": "repeatable",
    r"what (came|comes) of|c[ao]mes? to": "outcome, result",
    r"as ((it|they) \w+ |is |are )?(written|typed)|as (it|they) stands?": "as configured, verbatim",
    r"on (its|the|their) way": "pending, in flight",
    r"in vain": "without effect, fails",
    r"turned(?! (on|off|into)\b)": "pivoted",
    r"mend(s|ed|ing)?": "fix",
    r"people": "the user, users",
    r"somebody|nobody|everybody|whoever": "the user, users; a process",
    r"things? that (is|are) shown": "output",
    r"nothing runs": "no run is active",
    r"lines? to type": "command to run",
    r"of (its|their) own": "dedicated, exclusive; a whole GPU",
    r"lack(s|ed|ing)?": "needs, is short of",
    r"machine's words": "the driver's message",
    r"so (many|much)|how often more": "number of, up to, at most, at least",
    r"(?<!there )is no(?! (longer|more))|names no|there (is|are) none": "must be, cannot, is not, not found",
}.items()}


class Text(NamedTuple):
    place: str  # A page, or a command with --help.
    line: int
    kind: str   # "prose", "heading", "cell", "option", or "command" and its name.
    text: str

    def source(self):
        return self.place if self.place in PAGES else "help"


def page_texts(place, content):
    """The texts of a page in Markdown."""
    content = re.sub(r"<!--.*?-->|^```.*?^```", lambda match: "\n" * match[0].count("\n"), content, flags=re.S | re.M)
    texts, kind = [], ""  # The kind of the text that a line continues.
    for number, line in enumerate(map(str.strip, content.splitlines()), 1):
        if line.startswith("|"):
            cells = re.sub(r"`[^`]*`|\\\|", lambda code: code[0].replace("|", "/"), line.strip("|")).split("|")
            texts += [[number, "cell", cell] for cell in cells if cell.strip(" :-")]
            kind = ""
        elif starts := re.match(r"(#+|[-*]|\d+\.) ", line):
            texts.append([number, "heading" if line[0] == "#" else "prose", line[starts.end():]])
            kind = texts[-1][1].replace("heading", "")
        elif kind and line:
            texts[-1][2] += "\n" + line
        else:
            kind = "prose" if line else ""
            texts += [[number, kind, line]] if line else []
    for number, kind, text in texts:
        label = re.match(r"\*\*([^*]+)\*\*:\s", text)
        if label:
            yield Text(place, number, "heading", label[1])
        yield Text(place, number, kind, text[label.end():] if label else text.strip())


def help_texts(place, output):
    """The texts of a help: the names of options and commands are in the columns before the text of -h."""
    lines = output.splitlines()
    column = next((match.end() for line in lines if (match := re.match(r"  -h, --help +", line))), 30)
    texts, kind, section = [], "", ""
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("Usage:"):
            kind = ""
        elif not line.startswith(" "):
            is_heading = line.endswith(":") and lines[number:][:1] and lines[number].startswith(" ")
            if kind == "prose" and not is_heading and not line.startswith("Exit codes:"):
                texts[-1][2] += "\n" + line
                continue
            kind, section = ("heading", line) if is_heading else ("prose", section)
            texts.append([number, kind, line.rstrip(":")])
        elif kind.startswith(("option", "command")) and not line[:column].strip():
            texts[-1][2] += "\n" + line.strip()
        else:
            name, text = line[:column], line[column:]
            if len(line) < column or not name.endswith(" ") or name.count("[") != name.count("]"):  # The text is below.
                name, text = line, ""
            command = re.match(r"  ([a-z][\w-]*)(, *[\w-]+)*\s*$", name)
            is_option = re.match("  -", name) or section == "Arguments:" and re.match(r"  \S", name)
            kind = "option" if is_option else f"command {command[1]}" if command else ""
            texts += [[number, kind, text]] if kind else []
    return [Text(place, number, kind, text.strip()) for number, kind, text in texts if text.strip()]


def output_of(*command):
    """The output of a command; None where it fails."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=PATIENCE_S)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        sys.exit(f"prose: '{' '.join(command)}': {error}")
    return None if done.returncode else done.stdout


def helps(program, words=(), whole=None):
    """The command and the output of every help of the program."""
    output = output_of(program, *words, "--help")
    if output is None or output == whole:
        return
    yield " ".join(("trainyard", *words, "--help")), output
    for text in help_texts("", output):
        if text.kind.startswith("command"):
            yield from helps(program, (*words, text.kind.split()[1]), whole or output)
    for topic in () if words else TOPICS:
        page = output_of(program, "help", topic)
        if page is not None:
            yield f"trainyard help {topic}", page


def plain(text):
    """The text with ` for code, and without marks. Line breaks stay."""
    code = r"(?<![\w`])`+[^`]+`+|https?://[^\s)]+" + (r"|(?<!\w)'[^']+'(?!\w)|(?<!\S)--?\w\S*" if text.source() == "help" else "")
    unlinked = re.sub(r"!?\[((?:[^\]\[]|\[[^\]]*\])*)\]\([^)]*\)", r"\1", text.text)
    return re.sub(code, lambda match: "`" + "\n" * match[0].count("\n"), unlinked).replace("*", "")


def words_in(sentence):
    return sum(bool(re.search(r"[^\W\d_]", word)) for word in sentence.split())


def may_begin(sentence, opener, text, is_first):
    on_page, opener = text.source() != "help", opener.lower()
    return (sentence.endswith("?") or ALLOWED.match(sentence) or opener == "it" and not is_first or opener == "one" and ONE_NOUN.match(sentence)
            or on_page and (sentence.lower().startswith("how to ") or text.kind in ("heading", "cell") and QUESTION.match(sentence)))


def faults(text):
    """The findings in a text, each with its line, the sentence, the position in it, and the rule."""
    whole, start = plain(text), 0
    for end in SENTENCE_END.finditer(whole):
        line, is_first = text.line + whole[:start].count("\n"), start == 0
        sentence, start = " ".join(whole[start:end.start()].split()).lstrip("(\""), end.end()
        if (opener := OPENERS.match(sentence)) and not may_begin(sentence, opener[1], text, is_first):
            yield line, sentence, 0, f"begins with '{opener[1]}': begin with the noun or the verb"
        for pattern, cure in WORDS.items():
            for found in pattern.finditer(sentence):
                yield line, sentence, found.start(), f"'{found[0]}': write {cure}"
        if text.kind != "cell" and words_in(sentence) > SENTENCE_WORDS_MAX:
            yield line, sentence, 0, f"{words_in(sentence)} words in a sentence (at most {SENTENCE_WORDS_MAX}): split it"
        if len(colons := list(re.finditer(r"(?<!\(default):(?=\s|$)", sentence))) > 1:
            yield line, sentence, colons[1].start(), "a second colon: make it two sentences"
    if text.kind == "cell" and words_in(whole) > CELL_WORDS_MAX:
        yield text.line, whole.strip(), 0, f"{words_in(whole)} words in a cell (at most {CELL_WORDS_MAX}): move the rest below the table"
    if text.kind.startswith(("option", "command")):
        about = " ".join(DEFAULT.sub("", text.text).split())
        for shown in [about] if len(about) > HELP_CHARACTERS_MAX else text.text.splitlines():
            if len(shown) > HELP_CHARACTERS_MAX:
                yield text.line, shown, 0, f"{len(shown)} characters (at most {HELP_CHARACTERS_MAX}): move the rest to the end of the help"


def findings(texts, exceptions):
    """A line for each finding, none twice."""
    found, used = {}, set()
    for text in texts:
        for line, sentence, at, rule in faults(text):
            matching = {key for key in exceptions if key[0] == text.source() and key[1] in sentence}
            used |= matching
            begin = max(0, at - 30) if len(sentence) > 60 else 0
            shown = "..." * (begin > 0) + sentence[begin:begin + 60] + "..." * (len(sentence) > begin + 60)
            if not matching:
                found.setdefault((text.source(), sentence, rule), f"{text.place}:{line}: {shown} : {rule}")
    sources = {text.source() for text in texts}
    unused = [key for key in exceptions if key[0] in sources and key not in used]
    return [*found.values(), *(f"{source}:1: {part} : an exception that matches nothing: delete it" for source, part in unused)]


def content_of(path):
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        sys.exit(f"prose: {path} cannot be read: {error}")


def main(arguments, root=pathlib.Path(__file__).resolve().parent.parent, exceptions=EXCEPTIONS):
    texts = [text for page in PAGES for text in page_texts(page, content_of(root / page))]
    if arguments and not pathlib.Path(arguments[0]).is_file():
        sys.exit(f"prose: {arguments[0]}: not found: build it first")
    shown = dict(helps(str(pathlib.Path(arguments[0]).resolve()))) if arguments else {}
    if arguments and not shown:
        sys.exit(f"prose: '{arguments[0]} --help' fails")
    texts += [text for place, output in shown.items() for text in help_texts(place, output)]
    found = findings(texts, exceptions)
    run_help = shown.get("trainyard run --help", "").splitlines()
    # A terminal continues a longer line in the next one.
    if (lines := sum(max(1, -(-len(line) // RUN_HELP_COLUMNS)) for line in run_help)) > RUN_HELP_LINES_MAX:
        found.append(f"trainyard run --help:{lines}: {lines} lines (at most {RUN_HELP_LINES_MAX}) : move options to a topic of 'help'")
    print(*found, f"prose: {len(found)} findings" if found else f"prose: ok, {len(texts)} texts", sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
