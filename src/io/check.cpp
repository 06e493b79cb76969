#include "headroom/io/check.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include "file_formats.hpp"
#include "headroom/io/measurements_file.hpp"
#include "headroom/io/runs_file.hpp"
#include "headroom/io/samples_file.hpp"
#include "nccl_tests.hpp"
#include "sample_csv.hpp"
#include "sample_text.hpp"
#include "text.hpp"

namespace headroom {
namespace {

// CSV or the output of nccl-tests: text whose first line is a header in words.
bool is_sample_text(std::string_view text) {
  if (text.empty() || first_non_text_byte(text)) return false;
  const char first = text.front();  // # begins the name of a column that is a note
  const bool names = first == '#' || std::isalpha(static_cast<unsigned char>(first)) != 0;
  return is_nccl_tests(text) || (names && is_sample_csv(text));
}

}  // namespace

std::string_view check_file(const std::string& path) {
  const std::string text = read_file(path);
  if (is_sample_text(text)) {
    parse_samples(text, path);
    return "samples";
  }
  Document document = read_document(text, path, longest_list_of_rows);
  if (document.root.is_array()) {
    std::vector<Problem> mistakes = mistakes_of(parse_runs(text, path), path);
    if (!mistakes.empty()) throw InputError(std::move(mistakes));
    return "runs";
  }
  const auto has_any = [&](const auto& keys) {
    return std::any_of(keys.begin(), keys.end(),
                       [&](const char* key) { return document.root.contains(key); });
  };
  if (has_any(std::array{"samples"})) {
    parse_samples(text, path);
    return "samples";
  }
  if (has_any(std::array{"label", "titles", "variants", "settings"})) {
    source_of(std::move(document));
    return "source";
  }
  if (has_any(std::array{"iteration", "allocated"})) {
    spreads_of(std::move(document));
    return "spreads";
  }
  if (has_any(std::array{"cases", "targets"})) {
    parse_measurements(text, path);
    return "measurements";
  }
  if (has_any(std::array{"releases"})) {
    releases_of(std::move(document));
    return "releases";
  }
  if (has_any(std::array{"recipes"})) {
    recipes_of(std::move(document));
    return "recipes";
  }
  if (has_any(std::array{"hidden", "layers", "heads", "feedforward"})) {
    model_of(std::move(document));
    return "model";
  }
  // Before systems, which have a memory too.
  if (has_any(std::array{"gradient_accumulation", "norm_backward", "product_rate"})) {
    software_of(std::move(document));
    return "software";
  }
  if (has_any(std::array{"device", "memory", "devices_per_node", "reserves", "base", "scaled_from"})) {
    system_of(std::move(document));
    return "system";
  }
  throw InputError(path,
                   "is no model (hidden, layers, ...), system (device, memory, ...), software "
                   "(gradient_accumulation, product_rate, ...), published source (label, titles, ...), "
                   "spreads (iteration, allocated), releases, recipes, samples, "
                   "measurements (cases, targets) or list of runs");
}

}  // namespace headroom
