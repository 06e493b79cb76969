#include "nccl_tests.hpp"

#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "headroom/core/decimal.hpp"
#include "sample_text.hpp"
#include "text.hpp"

namespace headroom {
namespace {

constexpr std::string_view starting = "# Collective test starting: ";

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t start = line.find_first_not_of(" \t"); start != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(" \t", start), line.size());
    words.push_back(line.substr(start, end - start));
    start = line.find_first_not_of(" \t", end);
  }
  return words;
}

template <class T>
std::optional<T> number_of(std::string_view word) {
  T value{};
  const char* const last = word.data() + word.size();
  std::from_chars_result read{};
  if constexpr (std::is_same_v<T, double>) {
    read = decimal_from_chars(word.data(), last, value);
  } else {
    read = std::from_chars(word.data(), last, value);
  }
  if (read.ec != std::errc() || read.ptr != last) return std::nullopt;
  return value;
}

// Of a program's or a file's name: "all_reduce_perf". Older versions print no program's name.
std::optional<SampleKind> collective_in(std::string_view name) {
  for (const char* known :
       {"all_reduce", "all_gather", "reduce_scatter", "alltoall", "all_to_all", "sendrecv"}) {
    if (name.find(known) != std::string_view::npos) return collective_of(known);
  }
  return std::nullopt;
}

class Reader {
 public:
  explicit Reader(const std::string& file) : problems_(file), kind_(collective_in(file)) { set_.file = file; }

  void read(std::string_view line, std::size_t number) {
    if (line.starts_with(starting)) {
      program_ = line.substr(starting.size());
      kind_ = collective_in(program_);
    } else if (line.starts_with("# nThread") || line.starts_with("# Using devices")) {
      ranks_ = 0;
      longest_row_ = 0;
      nodes_.clear();
    } else if (line.starts_with("#") && line.find(" Rank ") != std::string_view::npos) {
      read_rank(line, number);
    } else if (!line.starts_with("#")) {
      read_row(words_of(line), number);
    }
  }

  SampleSet take() {
    problems_.finish();
    return std::move(set_);
  }

 private:
  // "#  Rank  0 Group  0 Pid  12345 on   node1 device  0 [0x07] NVIDIA A100-SXM4-80GB"
  void read_rank(std::string_view line, std::size_t number) {
    ++ranks_;
    const std::vector<std::string_view> words = words_of(line);
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] == "on") nodes_.insert(std::string(words[i + 1]));
    }
    const std::size_t bracket = line.find("] ");
    if (bracket == std::string_view::npos) return;
    const std::string device(line.substr(bracket + 2));
    if (set_.device.empty()) set_.device = device;
    if (device != set_.device) {
      problems_.report(
          number, fmt::format("'{}' is another device than '{}'", printable(device), printable(set_.device)));
    }
  }

  // size, count, type[, redop[, root]], then time, algbw, busbw, #wrong out of place and the same in place. Lines of
  // other programs stand between them; one that begins with a number is a row.
  void read_row(const std::vector<std::string_view>& words, std::size_t number) {
    constexpr std::size_t after_time = 8;
    const auto bytes = words.empty() ? std::nullopt : number_of<std::int64_t>(words[0]);
    if (!bytes) return;
    if (words.size() < after_time + 3 || words.size() < longest_row_)
      return problems_.report(number, fmt::format("is cut off after {} words of a row", words.size()));
    longest_row_ = words.size();
    const std::size_t at = words.size() - after_time;
    const auto time = number_of<double>(words[at]);
    if (!time || !std::isfinite(*time) || *time <= 0) {
      return problems_.report(
          number, fmt::format("the out-of-place time must be above zero (found '{}')", printable(words[at])));
    }
    if (const auto wrong = number_of<double>(words[at + 3]); wrong && *wrong != 0) {
      return problems_.report(number, fmt::format("has {} wrong results: its time means nothing", *wrong));
    }
    if (*bytes < 1) return;  // nccl-tests may begin at nothing at all
    if (!kind_ && !program_.empty()) {
      return problems_.report(number,
                              fmt::format("{} is not modelled: all_reduce, all_gather, reduce_scatter, "
                                          "alltoall and sendrecv are",
                                          printable(program_)));
    }
    if (!kind_) {
      return problems_.report(number,
                              "of which collective? Keep the line \"# Collective test starting: ...\", or "
                              "name the file after it, such as all_reduce.txt");
    }
    if (ranks_ < 2)
      return problems_.report(number, "of how many ranks? Keep the lines \"#  Rank ...\", two or more");
    if (nodes_.size() > 1) {
      return problems_.report(number,
                              fmt::format("ran over {} nodes; rates are fitted within one", nodes_.size()));
    }
    set_.samples.push_back({.kind = *kind_,
                            .ranks = ranks_,
                            .bytes = Bytes(static_cast<double>(*bytes)),
                            .median = Seconds(*time / 1e6),
                            .where = fmt::format("line {}", number)});
  }

  LineProblems problems_;
  SampleSet set_;
  std::optional<SampleKind> kind_;
  std::string program_;          // "all_reduce_perf"; empty where the file does not say
  std::size_t longest_row_ = 0;  // in words: rows under one heading are equally long
  std::int64_t ranks_ = 0;
  std::set<std::string> nodes_;
};

}  // namespace

bool is_nccl_tests(std::string_view text) {
  return text.find("busbw") != std::string_view::npos && text.find("out-of-place") != std::string_view::npos;
}

SampleSet parse_nccl_tests(std::string_view text, const std::string& file) {
  const std::vector<std::string_view> lines = lines_of(text);
  if (lines.size() > most_samples) {
    throw InputError(file, fmt::format("must hold at most {} lines", most_samples));
  }
  Reader reader(file);
  for (std::size_t i = 0; i < lines.size(); ++i) reader.read(lines[i], i + 1);
  return reader.take();
}

}  // namespace headroom
