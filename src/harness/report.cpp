#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>
#include <unistd.h>

namespace headroom::harness {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t whole(Bytes bytes) { return static_cast<std::int64_t>(bytes.count()); }

void put_size(Json& json, const Sample& sample) {
  if (sample.kind == SampleKind::matrix_product) {
    const Gemm& product = sample.product;
    json["m"] = product.rows;
    json["n"] = product.columns;
    json["k"] = product.inner;
    json["batch"] = product.batch;
    json["result_bytes"] = product.result_bytes;
    json["flops"] = static_cast<std::int64_t>(flops(product).count());
  }
  if (sample.ranks > 0) json["ranks"] = sample.ranks;
  if (sample.nodes > 1) json["nodes"] = sample.nodes;
  if (sample.bytes > Bytes()) json["bytes"] = whole(sample.bytes);
}

Json json_of(const Measured& measured) {
  const Sample& sample = measured.sample;
  Json json{{"kind", name_of(sample.kind)}};
  if (!sample.label.empty()) json["label"] = sample.label;
  put_size(json, sample);
  if (sample.kind != SampleKind::empty_kernel) json["dtype"] = name_of(sample.dtype);
  if (sample.half_format != HalfFormat::unnamed) json["half_format"] = name_of(sample.half_format);
  json["load"] = name_of(sample.load);
  json["median_seconds"] = sample.median.count();
  if (sample.spread > 0) json["spread"] = sample.spread;
  json["repeats"] = measured.repeats;
  if (const auto& state = measured.state) {
    const auto put = [&](const char* key, double value) {
      if (value > 0) json[key] = value;
    };
    put("sm_clock_mhz", state->sm_clock_mhz);
    put("least_sm_clock_mhz", state->least_sm_clock_mhz);
    put("power_watts", state->power_watts);
    put("temperature_celsius", state->temperature_celsius);
  }
  return json;
}

}  // namespace

Timing timing_of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double q) {
    return seconds[static_cast<std::size_t>(std::lround(q * static_cast<double>(seconds.size() - 1)))];
  };
  return {.median_seconds = at(0.5),
          .spread = 0.5 * (at(0.75) - at(0.25)) / at(0.5),
          .repeats = static_cast<int>(seconds.size())};
}

std::string samples_json(const Heading& heading, const std::vector<Measured>& measured) {
  std::string text = "{\n  \"format\": 1";
  const auto put = [&](const char* key, const std::string& value) {
    if (!value.empty()) text += ",\n  \"" + std::string(key) + "\": " + Json(value).dump();
  };
  put("device", heading.device);
  put("driver", heading.driver);
  put("cuda", heading.cuda);
  put("cublas", heading.cublas);
  put("nccl", heading.nccl);
  put("clocks", heading.clocks);
  text += ",\n  \"samples\": [";
  // A line each.
  for (std::size_t i = 0; i < measured.size(); ++i) {
    text += (i == 0 ? "\n    " : ",\n    ") + json_of(measured[i]).dump();
  }
  return text + "\n  ]\n}\n";
}

Report::Report(std::string file, Heading heading, const std::vector<Sample>& planned)
    : file_(std::move(file)),
      heading_(std::move(heading)),
      planned_(planned.size()),
      start_(std::chrono::steady_clock::now()) {
  for (const Sample& sample : planned) planned_duration_ += assumed_duration(sample);
}

void Report::add(Sample sample, const Timing& timing, const std::optional<DeviceState>& state) {
  const std::lock_guard lock(mutex_);
  sample.median = Seconds(timing.median_seconds);
  sample.spread = timing.spread;
  measured_.push_back({std::move(sample), timing.repeats, state});
  advance(measured_.back().sample);
}

void Report::skip(const Sample& sample, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (reason != last_note_) note(reason);
  last_note_ = reason;
  advance(sample);
}

void Report::wrong(const Sample& sample, const std::string& reason) {
  skip(sample, reason + "; left out");
  const std::lock_guard lock(mutex_);
  ++wrong_;
}

void Report::note(const std::string& text) const {
  const char* const over_the_bar = isatty(STDERR_FILENO) == 0 ? "" : "\r\033[K";
  std::fprintf(stderr, "%sheadroom-measure: %s\n", over_the_bar, text.c_str());
}

void Report::advance(const Sample& sample) {
  ++passed_;
  passed_duration_ += assumed_duration(sample);
  if (isatty(STDERR_FILENO) == 0) return;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const double done = std::min(passed_duration_ / planned_duration_, 1.0);
  constexpr int width = 40;
  const auto filled = static_cast<std::size_t>(done * width);
  const std::string bar = std::string(filled, '#') + std::string(width - filled, ' ');
  std::fprintf(stderr, "\r[%s] %zu of %zu, about %.0f s left \033[K", bar.c_str(), passed_, planned_,
               seconds / done - seconds);
}

std::size_t Report::count() const {
  const std::lock_guard lock(mutex_);
  return measured_.size();
}

std::size_t Report::wrong_count() const {
  const std::lock_guard lock(mutex_);
  return wrong_;
}

void Report::write() const {
  const std::lock_guard lock(mutex_);
  const std::string partial = file_ + ".partial";
  std::ofstream out(partial, std::ios::trunc | std::ios::binary);
  out << samples_json(heading_, measured_);
  out.close();
  if (!out) throw std::runtime_error(partial + ": cannot be written");
  std::filesystem::rename(partial, file_);
}

}  // namespace headroom::harness
