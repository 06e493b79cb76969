"""Reference pages of C++ headers, from their comments: Markdown, which scripts/site renders as it does the documentation.

A header has this style: a comment that begins the file; then, in the namespace, declarations, each after its own comment.
Those that follow each other without an empty line or a comment between them are one entry.
"""
import html
import pathlib
import re

LONGEST_VALUE = 12  # lines of an initializer that is shown

NAME = re.compile(r"(?:struct|class|enum class|inline namespace|using|concept)\s+(?:\[\[\w+\]\]\s*)?(\w+)")
CALL = re.compile(r"(operator(?:\(\)|[^\s(]+)|[\w~]+)\s*\(")
VALUE = re.compile(r"(\w+)\s*(?:=|\{|;)")


class Entry:
    def __init__(self, comment, code):
        self.comment = comment
        self.code = shortened(code)
        self.names = names_of(code)
        self.anchor = re.sub(r"\W", "", self.names[0].lower())


def depth_of(line):
    """How many braces and parentheses a line opens, less those that it closes; strings and comments aside."""
    line = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|//.*', "", line)
    return sum(line.count(c) for c in "{(") - sum(line.count(c) for c in "})")


def statements(code):
    """Lines of code by declaration: each ends where all braces are closed again."""
    found, depth = [[]], 0
    for line in code:
        found[-1].append(line)
        depth += depth_of(line)
        if depth == 0 and re.search(r"[;}]\s*(//.*)?$", line):
            found.append([])
    return [statement for statement in found if statement]


def is_record(statement):
    first = next((line for line in statement if not line.startswith("template")), "")
    return re.match(r"(struct|class|enum class)\b", first) is not None


def is_function(statement):
    """Whether a declaration has parameters before any value."""
    head = re.split(r"\(", " ".join(statement).replace("operator=", "operator"), maxsplit=1)
    return len(head) == 2 and not re.search(r"[={](?!=)", re.sub(r"operator\S+", "", head[0]).replace("template <", ""))


def shortened(code):
    """Declarations without what is no business of a caller: bodies of functions, long initializers, comparisons by default."""
    lines = []
    for statement in statements(code):
        text = [line for line in statement if not re.match(r"\s*friend bool operator==.*= default;", line)]
        if is_record(statement):
            lines += text
        elif is_function(text) and text[-1].endswith("}"):
            head = re.split(r"\)(?=[^()]*\{)", "\n".join(text), maxsplit=1)[0]
            lines += (head + ");").splitlines()
        elif len(text) > LONGEST_VALUE:
            lines.append(re.sub(r"\s*[={].*", " = {...};", text[0]))
        else:
            lines += text
    return "\n".join(lines)


def names_of(code):
    names = []
    for statement in statements(code):
        text = re.sub(r"^template\s*<[^{;]*?>\s*(?=\w)", "", " ".join(line.strip() for line in statement))
        if found := NAME.match(text):
            names.append(found[1])
        elif is_function(statement) and (found := CALL.search(text)):
            names.append(f"{found[1]}()")
        elif found := VALUE.search(text):
            names.append(found[1])
    return list(dict.fromkeys(names))


def entries(lines):
    """The documented declarations of a header, in its order."""
    comment, code, depth = [], [], 0
    for line in [*lines, ""]:
        at_top = depth == 0
        if at_top and code and (not line.strip() or line.startswith("//")):
            if wanted(code):
                yield Entry(comment, code)
            comment, code = [], []
        if at_top and line.startswith("//"):
            comment.append(line)
        elif at_top and not line.strip():
            comment = []  # of nothing: a heading between declarations
        elif line.strip() or code:
            code.append(line)
            depth += depth_of(line)


def wanted(code):
    """Declarations ahead, texts that are put together, and rows of tables of names are no entries of their own."""
    return not re.match(r"(template <>|(struct|class) \w+;$|namespace |\}|#|.* = \[)", code[0])


def prose(comment):
    """A comment as Markdown: words as they stand, what is set in by two blanks or more as code."""
    lines, in_code = [], False
    for line in comment:
        text = re.sub(r"^// ?", "", line)
        code = text.startswith("  ") and (in_code or not lines or not lines[-1].startswith("- "))
        if code != in_code:
            lines.append("" if code or not lines else "")
            in_code = code
        lines.append("    " + text if code else re.sub(r"([*_\[\]<])", lambda c: html.escape(c[1]) if c[1] == "<" else "\\" + c[1],
                                                       text) if "`" not in text else with_code(text))
    return "\n".join(lines)


def with_code(text):
    """Escapes all but what stands in backquotes."""
    parts = text.split("`")
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([*_\[\]])", r"\\\1", parts[i]).replace("<", "&lt;")
    return "`".join(parts)


class Reference:
    """The pages of some headers, which link each other's types."""

    def __init__(self, root, headers):
        self.parts = {}
        self.links = {}  # of a type, its page and anchor
        for header in headers:
            lines = (root / header).read_text().splitlines()
            start = lines.index("#pragma once")
            opened = lines.index("namespace headroom {")
            closed = max(i for i, line in enumerate(lines) if line.startswith("}  // namespace headroom"))
            found = list(entries(lines[opened + 1:closed]))
            taken = {}
            for entry in found:  # overloads
                taken[entry.anchor] = taken.get(entry.anchor, 0) + 1
                if taken[entry.anchor] > 1:
                    entry.anchor += f"-{taken[entry.anchor]}"
            self.parts[header] = (lines[:start], found)
            for entry in found:
                for name in entry.names:
                    if name[0].isupper() and not name.endswith("()"):
                        self.links.setdefault(name, f"{page_of(header)}#{entry.anchor}")

    def markdown(self, header):
        intro, found = self.parts[header]
        text = [f"# {header.removeprefix('include/headroom/')}", "", prose(intro), "",
                f'    #include <{header.removeprefix("include/")}>', ""]
        for entry in found:
            title = ", ".join(name.replace("_", "\\_").replace("*", "\\*").replace("<", "&lt;") for name in entry.names)
            text += [f"## {title} {{#{entry.anchor}}}", "", f'<pre class="declaration"><code>{html.escape(entry.code, quote=False)}'
                     "</code></pre>", "", prose(entry.comment), ""]
        return "\n".join(text)

    def linked(self, body):
        """A page with the types in its declarations as links."""
        def link(word):
            target = self.links.get(word[0])
            return f'<a href="{target}">{word[0]}</a>' if target else word[0]

        def code(block):
            pieces = re.split(r"(//[^\n]*)", block[2])  # words of comments are words
            # Not the name that is declared, nor one of an enumerator.
            types = r"(?<![\w&:])(?<!struct )(?<!class )[A-Z]\w+\b(?!::)"
            return block[1] + "".join(p if p.startswith("//") else re.sub(types, link, p) for p in pieces)

        return re.sub(r'(<pre class="declaration"><code>)(.*?)(?=</code>)', code, body, flags=re.DOTALL)


def page_of(header):
    """answer/plan.hpp has the page header-answer-plan.html."""
    return "header-" + pathlib.Path(header).with_suffix("").as_posix().removeprefix("include/headroom/").replace("/", "-") + ".html"
