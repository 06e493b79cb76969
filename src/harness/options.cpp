#include "options.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "headroom/core/error.hpp"

namespace headroom::harness {
namespace {

constexpr int most_gpus = 64;           // of a node
constexpr int longest_timeout = 86400;  // a day

std::string line_of(const Sample& sample) {
  std::string text(name_of(sample.kind));
  const auto add = [&](const std::string& more) { text += "  " + more; };
  if (!sample.label.empty()) add(sample.label);
  const Gemm& product = sample.product;
  if (sample.kind == SampleKind::matrix_product)
    add(fmt::format("{} x {} x {} x {}", product.batch, product.rows, product.columns, product.inner));
  if (sample.ranks > 0) add(fmt::format("{} ranks", sample.ranks));
  if (sample.nodes > 1) add(fmt::format("{} nodes", sample.nodes));
  if (sample.bytes > Bytes()) add(fmt::format("{:.0f} bytes", sample.bytes.count()));
  if (sample.half_format != HalfFormat::unnamed) add(std::string(name_of(sample.half_format)));
  if (sample.load == Load::sustained) add("sustained");
  return text + '\n';
}

}  // namespace

std::optional<Options> read_options(int argc, const char* const* argv) {
  Options options;
  std::vector<std::string> parts;
  std::vector<std::string> formats;
  int timeout = 300;
  CLI::App app{
      "Measures what is named, or all, on the GPUs that CUDA_VISIBLE_DEVICES shows, and writes the samples "
      "to FILE.\n"
      "Then: headroom calibrate FILE --base SYSTEM -o my-system.json"};
  app.name("headroom-measure");
  app.add_option("FILE", options.file, "Samples file to write (JSON)");
  app.add_option("PART", parts, "kernels, products or collectives; several, or all without any");
  app.add_option("--half-format", formats, "Of half precision: bf16, fp16, or both (default)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--gpus", options.gpus,
                 "GPUs of this process, the first ones; all that it sees if not given");
  app.add_option(
      "--rendezvous", options.rendezvous.file,
      "Of several processes: a file in a folder that all nodes share, by which they find each other");
  app.add_option("--timeout", timeout, "Seconds that they wait for each other (300)");
  app.add_flag("--dry-run", options.dry_run, "Only say what would be measured, and about how long it takes");
  app.add_flag("--list", options.list, "As --dry-run, with a line for each sample");
  app.footer("Ctrl-C ends it and keeps what was measured.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for_help) {
    app.exit(asked_for_help);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw InputError("", error.what());
  }

  std::vector<Problem> problems;
  const std::map<std::string, bool*> known{
      {"kernels", &options.kernels}, {"products", &options.products}, {"collectives", &options.collectives}};
  options.dry_run = options.dry_run || options.list;
  // Nothing is written, so that FILE may be left out.
  if (options.dry_run && known.contains(options.file)) parts.push_back(std::exchange(options.file, {}));
  if (!parts.empty()) options.kernels = options.products = options.collectives = false;
  for (const std::string& part : parts) {
    if (const auto found = known.find(part); found != known.end()) {
      *found->second = true;
    } else {
      problems.push_back(
          {"PART", fmt::format("must be kernels, products or collectives (found '{}')", part)});
    }
  }
  if (!formats.empty()) options.formats.clear();
  for (const std::string& name : formats) {
    const auto format = from_name<HalfFormat>(name);
    if (!format || *format == HalfFormat::unnamed) {
      problems.push_back({"--half-format", fmt::format("must be bf16 or fp16 (found '{}')", name)});
    } else if (std::find(options.formats.begin(), options.formats.end(), *format) == options.formats.end()) {
      options.formats.push_back(*format);
    }
  }
  if (options.gpus < 0 || options.gpus > most_gpus)
    problems.push_back({"--gpus", fmt::format("must be from 1 to {} (found {})", most_gpus, options.gpus)});
  if (timeout < 1 || timeout > longest_timeout)
    problems.push_back(
        {"--timeout", fmt::format("must be from 1 to {} seconds (found {})", longest_timeout, timeout)});
  if (known.contains(options.file))
    problems.push_back({"FILE", fmt::format("comes before the parts (found '{}')", options.file)});
  if (options.file.empty() && !options.dry_run)
    problems.push_back({"FILE", "is missing: where to write the samples"});
  if (!problems.empty()) throw InputError(problems);
  options.rendezvous.timeout = std::chrono::seconds(timeout);
  return options;
}

std::vector<Sample> planned_samples(const Options& options, std::int64_t ranks, std::int64_t nodes) {
  std::vector<Sample> all;
  const auto add = [&](const std::vector<Sample>& more) { all.insert(all.end(), more.begin(), more.end()); };
  if (options.collectives) {
    // As many ranks on each node, filled one node after the other.
    const std::int64_t in_node = ranks / nodes;
    for (const std::int64_t count : rank_counts(ranks)) {
      if (count <= in_node || count % in_node == 0)
        add(designed_collectives(count, count <= in_node ? 1 : count / in_node));
    }
  }
  if (options.kernels) add(designed_kernels());
  if (options.products) add(designed_products(options.formats));
  return all;
}

std::string dry_run(const Options& options, std::int64_t ranks, std::int64_t nodes) {
  std::string text;
  std::map<SampleKind, std::pair<std::size_t, Seconds>> by_kind;
  Seconds total;
  const std::vector<Sample> planned = planned_samples(options, ranks, nodes);
  for (const Sample& sample : planned) {
    if (options.list) text += line_of(sample);
    auto& [count, duration] = by_kind[sample.kind];
    ++count;
    duration += assumed_duration(sample);
    total += assumed_duration(sample);
  }
  if (options.list && !text.empty()) text += '\n';
  for (const auto& [kind, counted] : by_kind) {
    text += fmt::format("{:<18} {:>5} samples  about {:>4.0f} s\n", name_of(kind), counted.first,
                        counted.second.count());
  }
  text += fmt::format("{:<18} {:>5} samples  about {:>4.0f} s, over {} GPU{}\n", "in all", planned.size(),
                      total.count(), ranks, ranks == 1 ? "" : "s");
  text += "Durations assume 200 TFLOP/s, 1 TB/s of memory and 100 GB/s between GPUs; nothing was measured.\n";
  return text;
}

}  // namespace headroom::harness
