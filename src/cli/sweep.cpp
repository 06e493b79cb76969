#include "headroom/report/sweep.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/in_order.hpp"
#include "cli/interrupt.hpp"
#include "cli/notes.hpp"
#include "cli/output.hpp"
#include "cli/page_output.hpp"
#include "cli/progress.hpp"
#include "cli/shards.hpp"
#include "cli/stopping.hpp"
#include "cli/sweep_check.hpp"
#include "cli/sweep_points.hpp"
#include "headroom/interop/hugging_face.hpp"
#include "headroom/io/remarks.hpp"

namespace headroom::cli {
namespace {

struct SweepFlags {
  PointFlags point;
  std::vector<std::string> vary;
  std::vector<std::string> zip;
  FlagText threads;
  FlagText shard;
  FlagText time_limit;
  PageOutput page;
  OutputFlags output;
};

void add_flags(Command command, SweepKind kind, SweepFlags& flags) {
  add_point_flags(command, kind, flags.point);
  for (Option option : command.options()) option.required(false);  // it may be varied
  const Command varied = command.in(topic::sweep);
  varied.option("--vary", flags.vary, "FIELD=VALUES",
                "Vary a field: sequence=1024:65536:x2. Others: tensor_parallel=1,2,4,8, micro_batch=1:8:1. "
                "The last one is fastest");
  varied.option("--zip", flags.zip, "FIELD,FIELD,...", "Vary these fields together: devices,global_batch");
  command.in(topic::work)
      .option("--threads", flags.threads, "N",
              "Points at once (default: all cores); the answer does not depend on it");
  add_shard_flag(command, flags.shard);
  add_time_limit_flag(command, flags.time_limit);
  add_page_output(command, flags.page);
  add_output_flags(command, flags.output);
}

const char* command_of(SweepKind kind) { return kind == SweepKind::plan ? "sweep plan" : "sweep"; }

std::vector<std::string> arguments_of_part(const Command& command) {
  return command.arguments({flags_beside_the_result.begin(), flags_beside_the_result.end()});
}

// The values of a field, if it is varied.
template <class IsField>
std::vector<std::string> values_of_field(const Sweep& sweep, IsField is_field) {
  std::vector<std::string> values;
  std::size_t i = 0;
  for (const Axis& axis : sweep.head.grid.axes) {
    for (std::size_t j = 0; j < axis.fields.size(); ++j, ++i) {
      if (!is_field(sweep.fields[i])) continue;
      for (const std::vector<std::string>& step : axis.steps) values.push_back(step[j]);
      return values;
    }
  }
  return values;
}

// The values of a field that names something, or the one that is given or the default.
std::vector<std::string> named_inputs(const Sweep& sweep, FieldKind kind, const std::string& given) {
  std::vector<std::string> names =
      values_of_field(sweep, [&](const Field& field) { return field.kind == kind; });
  return names.empty() ? std::vector<std::string>{given} : names;
}

Inputs inputs_of(const Sweep& sweep, const PointFlags& given) {
  return {.models = named_inputs(sweep, FieldKind::model_name, given.request.model),
          .systems = named_inputs(sweep, FieldKind::system_name, given.system.system),
          .software = named_inputs(sweep, FieldKind::software_name, given.system.software)};
}

// Models are told of by their names alone: what is assumed of a config.json stands in the source that JSON has of it.
void note_names(const Sweep& sweep, const PointFlags& given) {
  const Inputs inputs = inputs_of(sweep, given);
  for (const std::string& name : inputs.models) tell_once(remarks_on_model(name));
  for (const std::string& name : inputs.systems) note_reading("system", name, given.system.overrides);
  for (const std::string& name : inputs.software) note_reading("software", name);
  const auto is_memory = [](const Field& field) { return field.prefix == "--set-system=memory="; };
  for (const std::string& memory : values_of_field(sweep, is_memory)) tell_once(remarks_on_memory(memory));
}

// Throws InputError with what is wrong with the sweep and not with single points of it.
Sweep read_sweep(const Command& command, SweepKind kind, const SweepFlags& flags) {
  Sweep sweep{.head = {.kind = kind, .arguments = arguments_of_part(command)}, .fields = {}};
  std::erase_if(sweep.head.arguments, [](const std::string& argument) {
    return argument.starts_with("--vary=") || argument.starts_with("--zip=");
  });
  sweep.head.grid = read_grid(flags.vary, flags.zip);
  sweep.fields = find_fields(kind, fields_of(sweep.head.grid));
  const auto gives = [&](const std::string& flag) {
    const auto starts = [&](const std::string& text) { return text.starts_with(flag + "="); };
    return std::any_of(sweep.head.arguments.begin(), sweep.head.arguments.end(), starts) ||
           std::any_of(sweep.fields.begin(), sweep.fields.end(),
                       [&](const Field& field) { return starts(field.prefix); });
  };
  sweep.head.with_days = gives("--tokens");
  sweep.head.with_prices = gives("--price-per-gpu-hour");
  sweep.head.with_failures = gives("--mtbf");
  check_sweep(sweep);
  note_names(sweep, flags.point);
  // What no point changes was read without a problem, or else the check would have found one that all points share.
  std::vector<Problem> of_what_is_varied;
  Request common = read_request(flags.point.request, of_what_is_varied);
  read_system_flags(flags.point.system, common, of_what_is_varied);
  const auto varies = [&](FieldKind one, FieldKind other) {
    return std::any_of(sweep.fields.begin(), sweep.fields.end(),
                       [&](const Field& field) { return field.kind == one || field.kind == other; });
  };
  if (!varies(FieldKind::model_name, FieldKind::model_field)) {
    sweep.head.model = common.model;
    sweep.head.model->sequence = common.workload.sequence;
  }
  if (!varies(FieldKind::system_name, FieldKind::system_field)) sweep.head.system = common.system;
  // A system brings its own stack where none is named.
  const bool system_decides =
      flags.point.system.software.empty() && varies(FieldKind::system_name, FieldKind::system_name);
  if (!varies(FieldKind::software_name, FieldKind::software_field) && !system_decides)
    sweep.head.software = common.software;
  return sweep;
}

struct StoppedEarly {};

// Calls take(point, row) for the points of a shard, in order, as long as the watch lets it.
template <class Take>
void for_each_row(const Sweep& sweep, const Shard& shard, std::int64_t threads, const Watch& watch,
                  const Take& take) {
  const std::int64_t points = point_count(sweep.head.grid);
  const std::int64_t count = (points - shard.index + shard.count) / shard.count;
  const auto point = [&](std::int64_t i) { return shard.index - 1 + i * shard.count; };
  std::vector<PointAt> at;  // for each thread, with a reader of its own
  for (std::int64_t i = 0; i < std::max<std::int64_t>(1, std::min(threads, count)); ++i) {
    at.push_back([&sweep, reader = std::make_shared<PointReader>(sweep.head.kind)](const auto& values) {
      return reader->read(arguments_at(sweep, values));
    });
  }
  using Row = std::optional<SweepRow>;  // none where it was stopped
  Progress progress("point");
  try {
    in_order<Row>(
        count, at.size(),
        [&](std::size_t thread, std::int64_t i) -> Row {
          if (stops(watch)) return {};
          SweepRow row = row_at(sweep.head.grid, at[thread], point(i), watch);
          if (stops(watch)) return {};
          std::transform(row.problems.begin(), row.problems.end(), row.problems.begin(), as_typed);
          return row;
        },
        [&](std::int64_t i, const Row& row) {
          if (!watch.stops) throw_if_interrupted();
          if (!row) throw StoppedEarly();
          progress.without_line([&] { take(point(i), *row); });
          progress.update("point", i + 1, count);
        });
  } catch (const StoppedEarly&) {
    // What was taken stands.
  }
}

ExitCode print_rows(const Sweep& sweep, const SweepFlags& flags, std::int64_t threads,
                    const std::optional<Seconds>& limit) {
  Stopping stopping(limit);
  SweepPrinter printer(sweep.head, style_of(flags.output));
  Output output(flags.output);
  output.write(printer.start());
  std::optional<SweepPrinter> in_json;
  if (is_drawn(flags.page)) in_json.emplace(sweep.head, Format::json);
  std::string json = in_json ? in_json->start() : "";
  bool any = false;
  std::int64_t rows = 0;
  const Watch watch{.stops = [&] { return stopping(); }, .tells = {}};
  for_each_row(sweep, Shard{}, threads, watch, [&](std::int64_t point, const SweepRow& row) {
    any = any || fits(row);
    ++rows;
    output.write(printer.row(point, row));
    if (in_json) json += in_json->row(point, row);
  });
  // A stop that came after the last row changes nothing.
  std::optional<Stop> stop = stopping.end();
  if (rows == point_count(sweep.head.grid)) stop.reset();
  output.write(printer.end(stop));
  if (stop && style_of(flags.output).format == Format::csv)
    say(fmt::format("{}: {} of {} points", stopped_text(*stop), rows, point_count(sweep.head.grid)));
  output.finish();
  if (in_json) json += in_json->end(stop);
  write_page(flags.page, [&](const Style&) { return json; });
  return any ? ExitCode::done : ExitCode::infeasible;
}

// A part is done whether or not anything fits: that is for the whole to say.
ExitCode write_part(const Sweep& sweep, const SweepFlags& flags, const PartHead& head, std::int64_t threads) {
  Output output(flags.output);
  output.write(part_start(head));
  bool first = true;
  for_each_row(sweep, head.shard, threads, {}, [&](std::int64_t point, const SweepRow& row) {
    output.write(part_row(json_line(sweep.head, point, row), std::exchange(first, false)));
  });
  output.write(part_end());
  output.finish();
  return ExitCode::done;
}

ExitCode run(const Command& command, SweepKind kind, const SweepFlags& flags) {
  std::vector<Problem> problems;
  constexpr std::int64_t most_threads = 256;
  std::int64_t threads = std::max(1U, std::thread::hardware_concurrency());
  read_count("--threads", flags.threads, threads, problems);
  threads = std::min(threads, most_threads);
  const std::optional<Seconds> limit = read_time_limit(flags.time_limit, problems);
  const std::optional<Shard> shard = read_shard(command, flags.shard, problems);
  if (flags.shard && limit)
    problems.push_back({"--time-limit", "does not go with --shard, whose parts are whole"});
  refuse_page_of_shard(flags.page, flags.shard.has_value(), problems);
  if (!problems.empty()) throw InputError(std::move(problems));
  style_of(flags.output);
  const Sweep sweep = read_sweep(command, kind, flags);
  if (!shard) return print_rows(sweep, flags, threads, limit);
  note_interrupts();
  return write_part(
      sweep, flags,
      part_head(command_of(kind), *shard, arguments_of_part(command), inputs_of(sweep, flags.point)),
      threads);
}

void set_up(Command command, SweepKind kind, ExitCode& exit_code) {
  const auto flags = std::make_shared<SweepFlags>();
  add_flags(command, kind, *flags);
  command.on_run([flags, kind, command, &exit_code] { exit_code = run(command, kind, *flags); });
}

}  // namespace

ExitCode merge_sweep(SweepKind kind, std::vector<PartReader>& parts, const OutputFlags& flags) {
  ArgumentReader reader;
  SweepFlags asked;
  add_flags(reader.command(), kind, asked);
  reader.read(parts.front().head().arguments);
  const Sweep sweep = read_sweep(reader.command(), kind, asked);
  check_inputs(parts, inputs_of(sweep, asked.point));

  SweepPrinter printer(sweep.head, style_of(flags));
  Output output(flags);
  output.write(printer.start());
  bool any = false;
  for (std::int64_t point = 0; point < point_count(sweep.head.grid); ++point) {
    throw_if_interrupted();
    PartReader& part = parts[static_cast<std::size_t>(point) % parts.size()];
    const std::optional<std::string> text = part.next_row();
    if (!text) throw InputError(part.path(), "lacks the row of point " + std::to_string(point));
    const SweepRow row = parse_row(sweep.head, point, *text, part.row_name());
    any = any || fits(row);
    output.write(printer.row(point, row));
  }
  for (PartReader& part : parts) {
    if (part.next_row()) throw InputError(part.row_name(), "is of no point of this sweep");
  }
  output.write(printer.end());
  output.finish();
  return any ? ExitCode::done : ExitCode::infeasible;
}

void add_sweep(Command program, ExitCode& exit_code) {
  Command estimates = program.add_command("sweep", "Evaluates a grid of models, systems and strategies");
  set_up(estimates, SweepKind::estimate, exit_code);
  estimates.examples(
      {"headroom sweep gpt3-175b -t 8 -p 8 --sp --vary sequence=1024:65536:x2 --vary "
       "recompute=none,selective,full",
       "headroom sweep llama-3-8b --vary devices=8,16,32 -t 4 --sp --format csv"});
  const std::string fields =
      "Fields are flags with underscores (tensor_parallel; yes or no where a flag has no value), and fields "
      "of "
      "model, system and software files (hidden, kernels.attention, memory; layer_kinds.moe.experts.count of "
      "one kind of layers).\n"
      "Exit code: 0 done, 2 bad input, 3 nothing fits at any point.";
  estimates.footer(fields);
  Command plans = estimates.add_command("plan", "Searches for the best strategy at each point");
  set_up(plans, SweepKind::plan, exit_code);
  plans.examples(
      {"headroom sweep plan --vary model=llama-3-8b,llama-3-70b --vary devices=64:1024:x2 --global-batch "
       "1024 "
       "--format csv",
       "headroom sweep plan llama-3-70b --vary devices=512:2048:x2 --tokens 15T --vary "
       "price_per_gpu_hour=2.50,4.10"});
  plans.footer(fields);
}

}  // namespace headroom::cli
