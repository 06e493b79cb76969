#include "headroom/io/measurements_file.hpp"

#include <algorithm>
#include <utility>

#include "document.hpp"
#include "file_formats.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/parallel/legality.hpp"
#include "object_reader.hpp"
#include "schema_writer.hpp"
#include "searched_members.hpp"

namespace headroom {
namespace {

constexpr Range counts{1, 1 << 22};
constexpr auto measured_strategy_fields = [](auto& fields, auto& strategy) {
  searched_members(fields, strategy, SearchedMembers::told);
};

// Percentages are above zero by the rule of plain numbers; a relative time of 97 is the paper's overhead of
// -3%.
struct WrittenFigures {
  std::optional<Seconds> forward, backward, layer, iteration, iteration_rounding;
  std::optional<double> relative_layer, gain, mfu, mfu_at_measured, hfu_paper_at_measured;
};

constexpr auto figure_fields = [](auto& fields, auto& figures) {
  fields.optional("forward", figures.forward);
  fields.optional("backward", figures.backward);
  fields.optional("layer", figures.layer);
  fields.optional("relative_layer_percent", figures.relative_layer);
  fields.optional("iteration", figures.iteration);
  fields.optional("iteration_rounding", figures.iteration_rounding);
  fields.optional("gain_percent", figures.gain);
  fields.optional("mfu_percent", figures.mfu);
  fields.optional("mfu_at_measured_percent", figures.mfu_at_measured);
  fields.optional("hfu_paper_at_measured_percent", figures.hfu_paper_at_measured);
};

struct WrittenCase {
  std::string source, name, baseline, model;
  Strategy strategy;
  std::int64_t global_batch = 0;
  WrittenFigures figures;
};

constexpr auto case_fields = [](auto& fields, auto& it) {
  fields.required("source", it.source);
  fields.required("name", it.name);
  fields.optional("baseline", it.baseline);
  fields.required("model", it.model);
  fields.required_object("strategy", it.strategy, measured_strategy_fields);
  fields.required("global_batch", it.global_batch, counts);
  fields.required_object("measured", it.figures, figure_fields);
};

constexpr auto target_fields = [](auto& fields, auto& target) {
  fields.required("group", target.group);
  fields.required("source", target.source);
  fields.required("quantity", target.measure);
  fields.optional("median_percent", target.median);
  fields.optional("mean_percent", target.mean);
  fields.optional("worst_percent", target.worst);
};

struct WrittenMeasurements {
  std::string source, system, software;
  std::vector<WrittenCase> cases;
  std::vector<Target> targets;
};

constexpr auto measurements_fields = [](auto& fields, auto& it) {
  fields.format(1);
  fields.required("source", it.source);
  fields.required("system", it.system);
  fields.required("software", it.software);
  fields.list("cases", it.cases, case_fields);
  fields.list("targets", it.targets, target_fields);
};

constexpr double percent = 0.01;

std::vector<Figure> figures_of(const WrittenFigures& written) {
  std::vector<Figure> figures;
  const auto add = [&](Measure measure, auto value, auto number) {
    if (value) figures.push_back({.measure = measure, .value = number(*value)});
  };
  const auto seconds = [](Seconds value) { return value.count(); };
  const auto part = [](double value) { return percent * value; };
  add(Measure::forward_seconds, written.forward, seconds);
  add(Measure::backward_seconds, written.backward, seconds);
  add(Measure::layer_seconds, written.layer, seconds);
  add(Measure::relative_layer, written.relative_layer, part);
  add(Measure::iteration_seconds, written.iteration, seconds);
  if (written.iteration && written.iteration_rounding)
    figures.back().rounding = written.iteration_rounding->count();
  add(Measure::gain, written.gain, part);
  add(Measure::mfu, written.mfu, part);
  add(Measure::mfu_at_measured, written.mfu_at_measured, part);
  add(Measure::hfu_paper_at_measured, written.hfu_paper_at_measured, part);
  return figures;
}

// Reads what the file refers to by name. Notes what does not exist, and figures that lack what they refer to.
Measurements resolve(const WrittenMeasurements& written, Document& document) {
  Measurements result{.targets = written.targets};
  for (Target& target : result.targets) {
    for (std::optional<double>* limit : {&target.median, &target.mean, &target.worst}) {
      if (*limit) **limit *= percent;
    }
  }
  const auto report = [&](const JsonPointer& field, std::string rule) {
    document.report(field, std::move(rule));
  };
  const auto named = [&](const JsonPointer& field, auto read) {
    try {
      read();
    } catch (const InputError& error) {
      for (const auto& [where, rule] : error.problems()) report(field, where + " " + rule);
    }
  };
  System system;
  Software software;
  named(JsonPointer("/system"), [&] { system = read_system(written.system); });
  named(JsonPointer("/software"), [&] { software = read_software(written.software); });
  if (!system.performance && !system.name.empty())
    report(JsonPointer("/system"), "has no performance figures");
  for (std::size_t i = 0; i < written.cases.size(); ++i) {
    const WrittenCase& it = written.cases[i];
    const JsonPointer at = JsonPointer("/cases") / i;
    MeasuredCase made{.source = it.source, .name = it.name, .baseline = it.baseline};
    made.request = {.model = {}, .system = system, .software = software, .strategy = it.strategy};
    Request& request = made.request;
    named(at / "model", [&] { request.model = read_model(it.model); });
    if (request.strategy.schedule == Strategy().schedule)
      request.strategy.schedule = implied_schedule(it.strategy.virtual_pipeline);
    request.workload = {.global_batch = it.global_batch, .sequence = request.model.sequence};
    if (request.model.sequence > 0) {
      for (const auto& [where, rule] :
           illegalities(request.model, request.strategy, request.workload, software)) {
        report(at / "strategy", where + " " + rule);
      }
    }
    made.figures = figures_of(it.figures);
    const bool known_baseline = std::any_of(
        written.cases.begin(), written.cases.end(),
        [&](const WrittenCase& other) { return other.source == it.source && other.name == it.baseline; });
    if (!it.baseline.empty() && !known_baseline)
      report(at / "baseline", "must be the name of a case of the source");
    if (it.baseline.empty() && (it.figures.relative_layer || it.figures.gain)) {
      report(at / "baseline", "is missing beside a ratio to it");
    }
    if (!it.figures.iteration && (it.figures.mfu_at_measured || it.figures.hfu_paper_at_measured)) {
      report(at / "measured" / "iteration", "is missing beside a utilization at it");
    }
    result.cases.push_back(std::move(made));
  }
  return result;
}

}  // namespace

nlohmann::ordered_json measurements_schema() {
  return SchemaWriter::write(WrittenMeasurements{}, measurements_fields, LeftOut::as_elsewhere);
}

Measurements parse_measurements(std::string_view text, const std::string& file) {
  Document document = read_document(text, file);
  WrittenMeasurements written;
  ObjectReader::read(document, JsonPointer(), written, measurements_fields);
  document.finish();
  Measurements measurements = resolve(written, document);
  document.finish();
  return measurements;
}

Measurements embedded_measurements() {
  Measurements all;
  for (const std::string_view name : embedded_names("measurement")) {
    const EmbeddedFile* file = find_embedded("measurement", name);
    Measurements one = parse_measurements(file->text, std::string(file->path));
    all.cases.insert(all.cases.end(), one.cases.begin(), one.cases.end());
    all.targets.insert(all.targets.end(), one.targets.begin(), one.targets.end());
  }
  return all;
}

}  // namespace headroom
