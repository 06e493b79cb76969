#!/usr/bin/env python3
"""The reference pages of headers: a header of this test, word for word, and that no page leaves out a declaration."""
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bindings/web/site"))
import reference  # noqa: E402

HEADER = """// Sizes of a box, in <m> and *not* in feet:
//
//   {"width": 3}
#pragma once

namespace headroom {

struct Ahead;

// A box.
struct Box {
  double width = 0;  // in m

  bool open = false;
  friend bool operator==(const Box&, const Box&) = default;
};

// Returns the volume.
inline double volume(const Box& box) {
  return box.width;
}
// Returns the volume of `two` boxes.
double volume(const Box& box, const Box& two = {});

inline constexpr std::array boxes{
    Row{"a", [](const Box& box) { return box.width; }},
};

template <>
inline constexpr int spellings<Box> = 3;

}  // namespace headroom
"""


def page(text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "include/headroom/io/box.hpp")
        path.parent.mkdir(parents=True)
        path.write_text(text)
        pages = reference.Reference(pathlib.Path(folder), ["include/headroom/io/box.hpp"])
        return pages, pages.markdown("include/headroom/io/box.hpp")


class Reference(unittest.TestCase):
    def test_declarations_with_their_comments(self):
        found = re.findall(r"^## (.*) \{#(.*)\}$", page(HEADER)[1], re.MULTILINE)
        self.assertEqual(found, [("Box", "box"), ("volume()", "volume"), ("volume()", "volume-2"), ("boxes", "boxes")])

    def test_no_bodies_and_no_comparisons(self):
        text = page(HEADER)[1]
        self.assertIn("inline double volume(const Box&amp; box);</code>", text)
        self.assertIn("const Box&amp; two = {});</code>", text)
        self.assertIn("double width = 0;  // in m\n\n  bool open", text)
        for hidden in ("operator==", "return box.width;\n", "spellings", "struct Ahead"):
            self.assertNotIn(hidden, text)

    def test_prose_is_kept_as_it_stands(self):
        text = page(HEADER)[1]
        self.assertIn("in &lt;m> and \\*not\\* in feet:", text)
        self.assertIn('      {"width": 3}', text)
        self.assertIn("Returns the volume of `two` boxes.", text)

    def test_types_are_links_but_where_they_are_declared(self):
        pages, _ = page(HEADER)
        body = '<pre class="declaration"><code>struct Box {};\nvoid f(const Box&amp;);  // of a Box</code></pre>'
        self.assertIn('struct Box {};\nvoid f(const <a href="header-io-box.html#box">Box</a>&amp;);  // of a Box', pages.linked(body))

    def test_no_stable_header_has_a_declaration_without_an_entry(self):
        headers = re.findall(r"\(\.\./(include/headroom/[\w/]+\.hpp)\)", (ROOT / "docs/library.md").read_text())
        self.assertGreater(len(headers), 20)
        pages = reference.Reference(ROOT, headers)
        for header in headers:
            lines = (ROOT / header).read_text().splitlines()
            declared = [found[1] for line in lines if (found := re.match(r"(?:struct|class|enum class) (\w+)[^;]*\{", line))]
            declared += [f"{found[1]}()" for line in lines if (found := re.match(r"[\w:<>,&* ]* (\w+)\([^()]*\)(?:;| \{)", line))
                         and not line.startswith(" ")]
            self.assertTrue(declared, header)
            entries = pages.parts[header][1]
            named = {name for entry in entries for name in entry.names}
            self.assertEqual(set(declared) - named, set(), header)
            self.assertEqual(len({entry.anchor for entry in entries}), len(entries), header)


if __name__ == "__main__":
    unittest.main()
