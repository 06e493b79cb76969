#include "sample_csv.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attention_sample.hpp"
#include "csv_row.hpp"
#include "expert_sample.hpp"
#include "text.hpp"

namespace headroom {
namespace {

constexpr std::int64_t largest_side = std::int64_t{1} << 28;
constexpr std::int64_t most_ranks = 1 << 16;
constexpr std::int64_t largest_message = std::int64_t{1} << 50;
constexpr std::int64_t largest_result = 16;

void read_dtype_and_load(const CsvRow& row, Sample& sample) {
  sample.dtype = row.choice("dtype", dtypes_that<has_arithmetic>, sample.dtype);
  sample.load = row.choice("load", std::array{Load::burst, Load::sustained}, sample.load);
}

Sample product_row(const CsvRow& row) {
  Sample sample{.kind = SampleKind::matrix_product};
  sample.product = {.rows = row.count("m", 1, largest_side),
                    .columns = row.count("n", 1, largest_side),
                    .inner = row.count("k", 1, largest_side)};
  read_dtype_and_load(row, sample);
  sample.product.batch = row.count("batch", 1, largest_side, sample.product.batch);
  sample.product.result_bytes = row.count("result_bytes", 1, largest_result, sample.product.result_bytes);
  sample.quantizes = row.flag("quantizes", false);
  if (sample.quantizes && !narrow_index(sample.dtype))
    row.refuse("quantizes is of dtypes that have rates of their own");
  sample.product.dtype = sample.dtype;
  return sample;
}

Sample attention_row(const CsvRow& row) {
  Sample sample{.kind = SampleKind::attention};
  read_dtype_and_load(row, sample);
  Attention& it = sample.attention;
  it.batch = row.count("batch", 1, largest_side, 1);
  it.heads = row.count("query_heads", 1, largest_side);
  it.kv_heads = row.count("kv_heads", 1, largest_side, it.heads);
  it.queries = row.count("sequence", 1, largest_side);
  it.head_size = row.count("head_size", 1, largest_side);
  it.value_size = row.count("value_size", 1, largest_side, it.head_size);
  it.dtype = sample.dtype;
  if (!set_mask(it, row.flag("causal", true), row.count("window", 0, largest_side, 0)))
    row.refuse("window is of causal attention");
  if (const auto rule = refused(it)) row.refuse(*rule);
  sample.attention_pass =
      row.choice("pass", std::array{AttentionPass::forward, AttentionPass::backward}, sample.attention_pass);
  return sample;
}

Sample expert_row(const CsvRow& row) {
  Sample sample{.kind = SampleKind::expert_block};
  read_dtype_and_load(row, sample);
  sample.expert_block = {.tokens = row.count("tokens", 1, largest_side),
                         .hidden = row.count("hidden", 1, largest_side),
                         .feedforward = row.count("expert_feedforward", 1, largest_side),
                         .top_k = row.count("top_k", 1, largest_side),
                         .experts = row.count("experts", 1, largest_side),
                         .tensor_parallel = row.count("tensor_parallel", 1, largest_side, 1),
                         .expert_parallel = row.count("expert_parallel", 1, largest_side, 1),
                         .dtype = sample.dtype};
  if (const auto rule = refused(sample.expert_block)) row.refuse(*rule);
  return sample;
}

Sample collective_row(const CsvRow& row) {
  Sample sample;
  const std::string_view name = row.has("collective") ? row.text("collective") : row.text("kind");
  if (const auto kind = collective_of(name)) {
    sample.kind = *kind;
  } else {
    row.refuse(
        fmt::format("unknown collective '{}', must be all_reduce, all_gather, reduce_scatter, "
                    "all_to_all or send_receive",
                    printable(name)));
  }
  sample.ranks = row.count("gpus", 2, most_ranks);
  sample.nodes = row.count("nodes", 1, most_ranks, 1);
  if (sample.ranks % sample.nodes != 0)
    row.refuse(fmt::format("nodes must divide gpus (found {} and {})", sample.nodes, sample.ranks));
  const std::string_view bytes = row.has("message_bytes") ? "message_bytes" : "bytes";
  sample.bytes = Bytes(static_cast<double>(row.count(bytes, 1, largest_message)));
  return sample;
}

using Names = std::vector<std::string_view>;

// Rows of one kind of kernel: what a file with a `kind` calls it, the columns that each must have, of which names with | between are
// one column under either, and those that it may have.
struct Table {
  std::string_view kind;
  std::string_view plural;
  Names needed;
  Names others;
  Sample (*read)(const CsvRow& row);
};

const std::vector<Table>& tables() {
  static const std::vector<Table> all{
      {"gemm",
       "GEMMs",
       {"m", "n", "k"},
       {"dtype", "load", "quantizes", "batch", "result_bytes"},
       product_row},
      {"attention",
       "attention",
       {"query_heads", "head_size", "sequence"},
       {"batch", "kv_heads", "value_size", "causal", "window", "pass", "dtype", "load"},
       attention_row},
      {"experts",
       "blocks of experts",
       {"tokens", "hidden", "expert_feedforward", "top_k", "experts"},
       {"tensor_parallel", "expert_parallel", "dtype"},
       expert_row},
      {"", "collectives", {"collective|kind", "gpus", "message_bytes|bytes"}, {"nodes"}, collective_row}};
  return all;
}

bool is_time(std::string_view name) {
  return std::any_of(time_columns.begin(), time_columns.end(),
                     [&](const TimeColumn& column) { return column.name == name; });
}

// The names of a column.
Names either(std::string_view names) {
  Names all;
  while (!names.empty()) {
    const std::size_t end = std::min(names.find('|'), names.size());
    all.push_back(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return all;
}

template <class Has>
std::optional<std::string_view> lacking(const Table& table, Has has) {
  for (const std::string_view needed : table.needed) {
    const Names names = either(needed);
    if (std::none_of(names.begin(), names.end(), has)) return needed;
  }
  return std::nullopt;
}

bool knows(const Table& table, std::string_view column) {
  if (is_time(column)) return true;
  const auto names_it = [&](std::string_view names) {
    const Names all = either(names);
    return std::find(all.begin(), all.end(), column) != all.end();
  };
  return std::any_of(table.needed.begin(), table.needed.end(), names_it) ||
         std::find(table.others.begin(), table.others.end(), column) != table.others.end();
}

std::string header_of(const Table& table) {
  std::string header;
  for (const std::string_view needed : table.needed) header += fmt::format("{},", either(needed).front());
  return header + std::string(time_columns.front().name);
}

// Of a file, by its header: one of all its rows, or none where each row names its own.
class SampleTables {
 public:
  SampleTables(const CsvColumns& columns, std::string_view header, const std::string& where)
      : columns_(columns) {
    const auto has = [&](std::string_view name) { return columns_.has(name); };
    const auto all = std::count_if(time_columns.begin(), time_columns.end(),
                                   [&](const TimeColumn& column) { return has(column.name); });
    for (const Table& table : tables()) {
      if (table_ == nullptr && !lacking(table, has)) table_ = &table;
    }
    // A table of collectives may say `kind` of them.
    const Names& names = columns_.names();
    const bool pure =
        table_ != nullptr &&
        std::all_of(names.begin(), names.end(), [&](std::string_view name) { return knows(*table_, name); });
    const bool mixed = has("kind") && !has("collective") && !pure;
    if ((table_ == nullptr && !mixed) || all == 0) refuse_header(header, where);
    if (all > 1)
      throw InputError(where, "must have one column of times: milliseconds, microseconds or seconds");
    if (mixed) table_ = nullptr;
    for (const std::string_view name : columns_.names()) check(name, mixed, where);
  }

  // The table that a row is of; nothing where the row says no kind that there is.
  [[nodiscard]] const Table* of(const CsvRow& row) const {
    if (table_ != nullptr) return table_;
    const std::string_view kind = row.text("kind");
    for (const Table& table : tables()) {
      if (table.kind == kind && !kind.empty()) return &table;
    }
    if (collective_of(kind)) return &tables().back();
    row.refuse(
        fmt::format("kind must be gemm, attention, experts, all_reduce, all_gather, reduce_scatter, "
                    "all_to_all or send_receive (found '{}')",
                    printable(kind)));
    return nullptr;
  }

  // Whether a row of several kinds has what its kind needs, and nothing else.
  [[nodiscard]] bool fits(const Table& table, const CsvRow& row) const {
    if (table_ != nullptr) return true;
    if (const auto name = lacking(table, [&](std::string_view each) { return row.has(each); })) {
      row.refuse(fmt::format("{} is missing, which {} need{}", either(*name).front(), table.plural,
                             table.kind == "attention" ? "s" : ""));
      return false;
    }
    for (const std::string_view name : columns_.names()) {
      if (name == "kind" || !row.has(name) || knows(table, name)) continue;
      row.refuse(fmt::format("{} must be empty: it is no column of {}", name, table.plural));
      return false;
    }
    return true;
  }

 private:
  [[noreturn]] static void refuse_header(std::string_view header, const std::string& where) {
    std::string headers;
    for (const Table& table : tables()) {
      headers += fmt::format("{}\"{}\"",
                             headers.empty()              ? ""
                             : &table == &tables().back() ? " or "
                                                          : ", ",
                             header_of(table));
    }
    throw InputError(
        where,
        fmt::format("must be the header {}, or have a column \"kind\" and such of several (found \"{}\")",
                    headers, printable(header, 100)));
  }

  void check(std::string_view name, bool mixed, const std::string& where) const {
    const bool known =
        mixed ? name == "kind" || std::any_of(tables().begin(), tables().end(),
                                              [&](const Table& table) { return knows(table, name); })
              : knows(*table_, name);
    if (known) return;
    const std::string of = mixed ? "samples" : std::string(table_->plural);
    throw InputError(where, fmt::format("column '{}' is unknown of {}: write #{} to pass it over",
                                        printable(name), of, printable(name)));
  }

  const CsvColumns& columns_;
  const Table* table_ = nullptr;
};

}  // namespace

bool is_sample_csv(std::string_view text) {
  const std::vector<std::string_view> lines = lines_of(text.substr(0, 200));
  return !lines.empty() && lines[0].find(',') != std::string_view::npos;
}

SampleSet parse_sample_csv(std::string_view text, const std::string& file) {
  const std::vector<std::string_view> lines = lines_of(text);
  const CsvColumns columns(lines[0], file + ":1");
  const SampleTables of_file(columns, lines[0], file + ":1");
  if (lines.size() > most_samples) {
    throw InputError(file, fmt::format("must hold at most {} samples", most_samples));
  }
  SampleSet set{.file = file};
  LineProblems problems(file);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    const std::size_t number = i + 1;
    const CsvRow row(lines[i], number, columns, problems);
    if (!row.is_whole()) continue;
    const Table* const table = of_file.of(row);
    if (table == nullptr || !of_file.fits(*table, row)) continue;
    Sample& sample = set.samples.emplace_back(table->read(row));
    sample.median = row.time();
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
