#include "sample_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "attention_sample.hpp"
#include "expert_sample.hpp"
#include "strict_json.hpp"
#include "text.hpp"

namespace headroom {
namespace {

constexpr std::int64_t largest_side = std::int64_t{1} << 28;
constexpr std::int64_t most_ranks = 1 << 16;
constexpr std::int64_t largest_message = std::int64_t{1} << 50;

constexpr std::string_view product_header = "m,n,k,milliseconds";
constexpr std::string_view attention_header = "query_heads,head_size,sequence,milliseconds";
constexpr std::string_view expert_header = "tokens,hidden,expert_feedforward,top_k,experts,milliseconds";
constexpr std::string_view collective_headers[] = {
    "collective,gpus,message_bytes,milliseconds", "kind,gpus,bytes,milliseconds",
    "collective,gpus,bytes,milliseconds", "kind,gpus,message_bytes,milliseconds"};

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t start = 0; start <= line.size();) {
    const std::size_t end = std::min(line.find(',', start), line.size());
    cells.push_back(line.substr(start, end - start));
    start = end + 1;
  }
  return cells;
}

// Reads the cells of a line, noting what is wrong with them.
class Cells {
 public:
  Cells(std::string_view line, std::size_t number, LineProblems& problems)
      : cells_(cells_of(line)), number_(number), problems_(problems) {}

  [[nodiscard]] bool are(std::size_t count) const {
    if (cells_.size() == count) return true;
    problems_.report(number_,
                     fmt::format("must have {} cells, as the header has (found {})", count, cells_.size()));
    return false;
  }
  [[nodiscard]] std::string_view operator[](std::size_t i) const { return cells_[i]; }

  [[nodiscard]] std::int64_t count(std::size_t i, const char* name, std::int64_t least,
                                   std::int64_t most) const {
    const std::string_view cell = cells_[i];
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error == std::errc() && end == cell.data() + cell.size() && value >= least && value <= most)
      return value;
    problems_.report(number_, fmt::format("{} must be an integer from {} to {} (found '{}')", name, least,
                                          most, printable(cell)));
    return least;
  }

  // One of some values of an enumeration.
  template <class E, std::size_t N>
  [[nodiscard]] E choice(std::size_t i, const char* name, const std::array<E, N>& values) const {
    std::string all;
    for (const E value : values) {
      if (name_of(value) == cells_[i]) return value;
      all += (all.empty() ? "" : ", ") + std::string(name_of(value));
    }
    refuse(fmt::format("{} must be one of {} (found '{}')", name, all, printable(cells_[i])));
    return values[0];
  }

  void refuse(std::string rule) const { problems_.report(number_, std::move(rule)); }

  // "milliseconds"
  [[nodiscard]] Seconds time(std::size_t i) const {
    const std::string_view cell = cells_[i];
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    const bool read = error == std::errc() && end == cell.data() + cell.size();
    if (read && std::isfinite(value) && value > 0) return Seconds(value / 1e3);
    problems_.report(number_,
                     fmt::format("milliseconds must be a number above zero (found '{}')", printable(cell)));
    return Seconds(1);
  }

 private:
  std::vector<std::string_view> cells_;
  std::size_t number_;
  LineProblems& problems_;
};

// Columns of a table of kernels, by name and in any order.
struct Column {
  std::string_view name;
  bool needed = false;
};
constexpr Column product_columns[] = {{"m", true}, {"n", true}, {"k", true},  {"milliseconds", true},
                                      {"dtype"},   {"load"},    {"quantizes"}};
constexpr Column attention_columns[] = {{"query_heads", true},
                                        {"head_size", true},
                                        {"sequence", true},
                                        {"milliseconds", true},
                                        {"batch"},
                                        {"kv_heads"},
                                        {"value_size"},
                                        {"causal"},
                                        {"window"},
                                        {"pass"},
                                        {"dtype"},
                                        {"load"}};
constexpr Column expert_columns[] = {{"tokens", true},    {"hidden", true},    {"expert_feedforward", true},
                                     {"top_k", true},     {"experts", true},   {"milliseconds", true},
                                     {"tensor_parallel"}, {"expert_parallel"}, {"dtype"}};

// Where each stands in a line.
class Columns {
 public:
  // Nothing where the header names another column, one twice, or not all that are needed.
  template <std::size_t N>
  static std::optional<Columns> of(std::string_view header, const Column (&known)[N]) {
    Columns columns;
    for (const std::string_view name : cells_of(header)) {
      const bool is_known = std::any_of(std::begin(known), std::end(known),
                                        [&](const Column& each) { return each.name == name; });
      if (!is_known || !columns.places_.emplace(name, columns.places_.size()).second) return std::nullopt;
    }
    for (const Column& each : known) {
      if (each.needed && !columns.has(each.name)) return std::nullopt;
    }
    return columns;
  }
  [[nodiscard]] std::size_t count() const { return places_.size(); }
  [[nodiscard]] bool has(std::string_view name) const { return places_.contains(name); }
  [[nodiscard]] std::size_t operator[](std::string_view name) const { return places_.at(name); }

 private:
  std::map<std::string_view, std::size_t> places_;
};

void read_dtype_and_load(const Cells& cells, const Columns& columns, Sample& sample) {
  if (columns.has("dtype"))
    sample.dtype = cells.choice(columns["dtype"], "dtype", dtypes_that<has_arithmetic>);
  if (columns.has("load"))
    sample.load = cells.choice(columns["load"], "load", std::array{Load::burst, Load::sustained});
}

Sample product_row(const Cells& cells, const Columns& columns) {
  Sample sample{.kind = SampleKind::matrix_product};
  sample.product = {.rows = cells.count(columns["m"], "m", 1, largest_side),
                    .columns = cells.count(columns["n"], "n", 1, largest_side),
                    .inner = cells.count(columns["k"], "k", 1, largest_side)};
  read_dtype_and_load(cells, columns, sample);
  if (columns.has("quantizes")) sample.quantizes = cells.count(columns["quantizes"], "quantizes", 0, 1) == 1;
  if (sample.quantizes && !narrow_index(sample.dtype))
    cells.refuse("quantizes is of dtypes that have rates of their own");
  sample.product.dtype = sample.dtype;
  sample.median = cells.time(columns["milliseconds"]);
  return sample;
}

Sample attention_row(const Cells& cells, const Columns& columns) {
  const auto count = [&](const char* name, std::int64_t least, std::int64_t without) {
    return columns.has(name) ? cells.count(columns[name], name, least, largest_side) : without;
  };
  Sample sample{.kind = SampleKind::attention};
  read_dtype_and_load(cells, columns, sample);
  Attention& it = sample.attention;
  it.batch = count("batch", 1, 1);
  it.heads = count("query_heads", 1, 1);
  it.kv_heads = count("kv_heads", 1, it.heads);
  it.queries = count("sequence", 1, 1);
  it.head_size = count("head_size", 1, 1);
  it.value_size = count("value_size", 1, it.head_size);
  it.dtype = sample.dtype;
  const bool causal = !columns.has("causal") || cells.count(columns["causal"], "causal", 0, 1) == 1;
  if (!set_mask(it, causal, count("window", 0, 0))) cells.refuse("window is of causal attention");
  if (const auto rule = refused(it)) cells.refuse(*rule);
  if (columns.has("pass"))
    sample.attention_pass =
        cells.choice(columns["pass"], "pass", std::array{AttentionPass::forward, AttentionPass::backward});
  sample.median = cells.time(columns["milliseconds"]);
  return sample;
}

Sample expert_row(const Cells& cells, const Columns& columns) {
  const auto count = [&](const char* name) {
    return columns.has(name) ? cells.count(columns[name], name, 1, largest_side) : 1;
  };
  Sample sample{.kind = SampleKind::expert_block};
  read_dtype_and_load(cells, columns, sample);
  sample.expert_block = {.tokens = count("tokens"),
                         .hidden = count("hidden"),
                         .feedforward = count("expert_feedforward"),
                         .top_k = count("top_k"),
                         .experts = count("experts"),
                         .tensor_parallel = count("tensor_parallel"),
                         .expert_parallel = count("expert_parallel"),
                         .dtype = sample.dtype};
  if (const auto rule = refused(sample.expert_block)) cells.refuse(*rule);
  sample.median = cells.time(columns["milliseconds"]);
  return sample;
}

Sample collective_row(const Cells& cells, std::size_t line, LineProblems& problems) {
  Sample sample;
  if (const auto kind = collective_of(cells[0])) {
    sample.kind = *kind;
  } else {
    problems.report(line,
                    fmt::format("unknown collective '{}', must be all_reduce, all_gather, reduce_scatter, "
                                "all_to_all or send_receive",
                                printable(cells[0])));
  }
  sample.ranks = cells.count(1, "gpus", 2, most_ranks);
  sample.bytes = Bytes(static_cast<double>(cells.count(2, "bytes", 1, largest_message)));
  sample.median = cells.time(3);
  return sample;
}

bool is_collective_header(std::string_view line) {
  for (const std::string_view header : collective_headers) {
    if (line == header) return true;
  }
  return false;
}

}  // namespace

void LineProblems::report(std::size_t line, std::string rule) {
  if (problems_.size() > most_problems_listed) return;
  if (problems_.size() == most_problems_listed) {
    problems_.push_back({file_, "has more problems than these"});
    return;
  }
  problems_.push_back({fmt::format("{}:{}", file_, line), std::move(rule)});
}

void LineProblems::finish() const {
  if (!problems_.empty()) throw InputError(problems_);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::optional<SampleKind> collective_of(std::string_view name) {
  if (name == "alltoall") return SampleKind::all_to_all;
  if (name == "sendrecv") return SampleKind::send_receive;
  const auto kind = from_name<SampleKind>(name);
  const bool known =
      kind && (is_collective(*kind) || *kind == SampleKind::all_to_all || *kind == SampleKind::send_receive);
  return known ? kind : std::nullopt;
}

bool is_sample_csv(std::string_view text) {
  const std::vector<std::string_view> lines = lines_of(text.substr(0, 200));
  return !lines.empty() && lines[0].find(',') != std::string_view::npos;
}

SampleSet parse_sample_csv(std::string_view text, const std::string& file) {
  const std::vector<std::string_view> lines = lines_of(text);
  const std::optional<Columns> products = Columns::of(lines[0], product_columns);
  const std::optional<Columns> attention = Columns::of(lines[0], attention_columns);
  const std::optional<Columns> experts = Columns::of(lines[0], expert_columns);
  if (!products && !attention && !experts && !is_collective_header(lines[0])) {
    throw InputError(
        file + ":1",
        fmt::format("must be the header \"{}\", \"{}\", \"{}\" or \"{}\" (found \"{}\")", product_header,
                    attention_header, expert_header, collective_headers[0], printable(lines[0], 100)));
  }
  constexpr std::size_t of_collectives = 4;
  const std::size_t columns = products    ? products->count()
                              : attention ? attention->count()
                              : experts   ? experts->count()
                                          : of_collectives;
  if (lines.size() > most_samples) {
    throw InputError(file, fmt::format("must hold at most {} samples", most_samples));
  }
  SampleSet set{.file = file};
  LineProblems problems(file);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    const std::size_t number = i + 1;
    const Cells cells(lines[i], number, problems);
    if (!cells.are(columns)) continue;
    Sample& sample = set.samples.emplace_back(products    ? product_row(cells, *products)
                                              : attention ? attention_row(cells, *attention)
                                              : experts   ? expert_row(cells, *experts)
                                                          : collective_row(cells, number, problems));
    sample.where = fmt::format("line {}", number);
  }
  problems.finish();
  if (!text.ends_with('\n')) {
    throw InputError(fmt::format("{}:{}", file, lines.size()),
                     "has no line end, so that it may be cut inside its last number: end it with one");
  }
  return set;
}

}  // namespace headroom
