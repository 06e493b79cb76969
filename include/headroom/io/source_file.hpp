// Source files, format 1, in presets/sources/: publications whose runs Headroom can predict, by key
// (calibrate/published_source.hpp). `headroom schema source` prints the JSON schema.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headroom/calibrate/measured_run.hpp"
#include "headroom/calibrate/published_source.hpp"
#include "headroom/io/run_cases.hpp"

namespace headroom {

// Returns the source in a file's text; its key is the stem of `file`. Throws InputError.
PublishedSource parse_source(std::string_view text, const std::string& file);

// Returns the text of a source file. parse_source reads back the same source, except its key.
std::string write_source(const PublishedSource& source);

// Returns the embedded source of a key. Throws InputError if there is none.
PublishedSource read_source(std::string_view key);

// Returns the embedded sources, sorted by key.
std::vector<PublishedSource> list_sources();

// Returns "names no published source (did you mean 'sc21'?)" if no embedded source has the key, else an empty
// text.
std::string unknown_source(std::string_view key);

// Gives each run without a key the key of the source that lists the run's whole title, letter for letter.
// Used on request only, for collections of runs written without keys.
void set_keys_by_title(std::vector<MeasuredRun>& runs);

// Sets keys as set_keys_by_title() does, and removes and returns the runs with other titles.
std::vector<SkippedRun> take_keys_by_title(std::vector<MeasuredRun>& runs);

// Returns how many runs without a key set_keys_by_title() would give one.
std::size_t listed_by_title(const std::vector<MeasuredRun>& runs);

}  // namespace headroom
