// Source files, format 1, in presets/sources/: publications whose runs the program can predict, by key
// (calibrate/published_source.hpp). `headroom schema source` says the same to other tools.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headroom/calibrate/measured_run.hpp"
#include "headroom/calibrate/published_source.hpp"
#include "headroom/io/run_cases.hpp"

namespace headroom {

// The source in a file's text; its key is the stem of `file`. Throws InputError.
PublishedSource parse_source(std::string_view text, const std::string& file);

// The text of a source file. parse_source gives the same source back, its key aside.
std::string write_source(const PublishedSource& source);

// The embedded source of a key. Throws InputError where there is none.
PublishedSource read_source(std::string_view key);

// The embedded sources, sorted by key.
std::vector<PublishedSource> list_sources();

// Empty, or "names no published source (did you mean 'sc21'?)" where no embedded source has the key.
std::string unknown_source(std::string_view key);

// Gives each run without a key that of the source which lists the run's whole title, letter for letter. For collections of runs that
// were written without keys, and on request only.
void set_keys_by_title(std::vector<MeasuredRun>& runs);

// And takes the runs of other titles out.
std::vector<SkippedRun> take_keys_by_title(std::vector<MeasuredRun>& runs);

// How many runs without a key that would give one.
std::size_t listed_by_title(const std::vector<MeasuredRun>& runs);

}  // namespace headroom
