"""check_layers.py can fail: each test makes a small tree with one fault and expects it to be reported."""

import tempfile
import unittest
from pathlib import Path

from check_layers import LONGEST_FILE, problems


class CheckLayers(unittest.TestCase):
    def check(self, files, *expected):
        """Expects one problem that starts with each of `expected`, and no other."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {"CMakeLists.txt": "", **files}.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            found = list(problems(Path(folder)))
        self.assertEqual(len(found), len(expected), found)
        for line, start in zip(found, expected):
            self.assertTrue(line.startswith(start), f"{line!r} does not start with {start!r}")

    def test_an_include_to_an_earlier_layer_is_fine(self):
        self.check({"include/headroom/plan/plan.hpp": '#include <vector>\n#include "headroom/core/units.hpp"\n',
                    "src/plan/plan.cpp": '#include "headroom/plan/plan.hpp"\n#include <fmt/format.h>\n'})

    def test_an_include_to_a_later_layer(self):
        self.check({"include/headroom/core/units.hpp": '#pragma once\n#include "headroom/plan/plan.hpp"\n'},
                   "include/headroom/core/units.hpp:2: core includes headroom/plan/plan.hpp; plan is a later")

    def test_an_internal_header_of_a_later_layer(self):
        self.check({"src/io/reader.hpp": "", "include/headroom/plan/plan.hpp": "",
                    "src/plan/plan.cpp": '#include "io/reader.hpp"\n'},
                   "src/plan/plan.cpp:1: plan includes io/reader.hpp; io is a later layer")

    def test_an_internal_header_beside_the_source_is_fine(self):
        self.check({"src/io/reader.hpp": "", "src/io/reader.cpp": '#include "reader.hpp"\n'})

    def test_a_public_header_with_a_third_party_include(self):
        self.check({"include/headroom/report/table.hpp": "#include <fmt/format.h>\n"},
                   "include/headroom/report/table.hpp:1: a public header includes <fmt/format.h>")

    def test_a_public_header_with_an_internal_include(self):
        self.check({"include/headroom/io/models.hpp": '#include "io/reader.hpp"\n', "src/io/reader.hpp": ""},
                   'include/headroom/io/models.hpp:1: a public header includes "io/reader.hpp"')

    def test_streams_threads_and_files_below_search(self):
        self.check({"include/headroom/memory/peak.hpp": "", "include/headroom/search/search.hpp": "",
                    "src/memory/peak.cpp": "#include <iostream>\n", "src/search/search.cpp": "#include <thread>\n"},
                   "src/memory/peak.cpp:1: memory includes <iostream>")

    def test_streams_and_threads_in_answers(self):
        self.check({"include/headroom/answer/plan.hpp": "#include <mutex>\n",
                    "src/answer/plan.cpp": "#include <iostream>\n",
                    "src/io/files.cpp": "#include <fstream>\n", "include/headroom/io/files.hpp": "",
                    "src/search/search.cpp": "#include <fstream>\n", "include/headroom/search/search.hpp": ""},
                   "include/headroom/answer/plan.hpp:1: answer includes <mutex>",
                   "src/answer/plan.cpp:1: answer includes <iostream>",
                   "src/search/search.cpp:1: search includes <fstream>")

    def test_a_source_without_a_header(self):
        self.check({"src/cli/main.cpp": "", "src/core/stray.cpp": ""},
                   "src/core/stray.cpp: has no header include/headroom/core/stray.hpp")

    def test_a_folder_that_is_no_layer(self):
        self.check({"include/headroom/utils/misc.hpp": ""}, "include/headroom/utils/misc.hpp: 'utils' is not")

    def test_an_include_of_nothing_we_have(self):
        self.check({"include/headroom/io/models.hpp": "", "src/io/models.cpp": '#include "readers.hpp"\n'},
                   'src/io/models.cpp:1: "readers.hpp" is no file of a layer')

    def test_a_long_file(self):
        self.check({"tests/core/units_test.cpp": "\n" * (LONGEST_FILE + 1)}, "tests/core/units_test.cpp: 501 lines")


if __name__ == "__main__":
    unittest.main()
