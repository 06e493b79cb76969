#include "headroom/interop/launch_patch.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "headroom/parallel/layout_text.hpp"
#include "headroom/parallel/stage_layout.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "interop/launch_lines.hpp"
#include "interop/unified_diff.hpp"

namespace headroom {
namespace {

// A run without what depends on where its settings stand.
LaunchedRun without_places(LaunchedRun run) {
  run.remarks.clear();
  for (auto* const settings : {&run.strategy, &run.stack}) {
    for (LaunchSetting& setting : *settings) setting.at = {};
  }
  for (LaunchRefusal& refusal : run.refusals) refusal.at = {};
  if (run.stated_batch) run.stated_batch->at = {};
  return run;
}

// What a value is called in files: a patch is read again, so that a word too many does no harm.
std::vector<std::string> value_words(std::string_view value) {
  if (value == "yes") return {"true", "True", "1"};
  if (value == "no") return {"false", "False", "0"};
  if (value == "none") return {"none", "false", "False"};
  if (value == "full") return {"full", "true", "True"};
  return {std::string(value)};
}

// The words that are written as another is come first: "False" where "True" stood.
std::vector<std::string> in_style_of(std::string_view old, std::vector<std::string> words) {
  const auto style = [](std::string_view word) {
    if (word == "true" || word == "false") return 't';
    if (word == "True" || word == "False") return 'T';
    return 'w';
  };
  std::stable_partition(words.begin(), words.end(),
                        [&](const std::string& word) { return style(word) == style(old); });
  return words;
}

// A setting in the words of frameworks: a flag of Megatron-LM's argparse, and keys of configurations.
struct FieldNames {
  std::string_view field;
  std::string_view megatron;
  std::array<std::string_view, 3> keys;
};
constexpr std::array field_names{
    FieldNames{"tensor_parallel", "tensor-model-parallel-size", {"tensor_parallel_degree"}},
    FieldNames{"pipeline_parallel", "pipeline-model-parallel-size", {}},
    FieldNames{"virtual_pipeline", "num-virtual-stages-per-pipeline-rank", {}},
    FieldNames{"context_parallel", "context-parallel-size", {"context_parallel_degree"}},
    FieldNames{"expert_parallel", "expert-model-parallel-size", {"expert_parallel_degree"}},
    FieldNames{"expert_tensor_parallel", "expert-tensor-parallel-size", {}},
    FieldNames{"micro_batch",
               "micro-batch-size",
               {"micro_batch_size", "local_batch_size", "per_device_train_batch_size"}},
    FieldNames{"sequence_parallel", "sequence-parallel", {}},
    FieldNames{"recompute", "recompute-granularity", {"gradient_checkpointing", "activation_checkpointing"}},
};

const FieldNames* names_of(std::string_view field) {
  const auto found = std::find_if(field_names.begin(), field_names.end(),
                                  [&](const FieldNames& names) { return names.field == field; });
  return found == field_names.end() ? nullptr : &*found;
}

std::string default_of(const StrategyField& field) { return value_of(field, Strategy{}, Workload{}); }

using Values = std::map<std::string, std::string, std::less<>>;

Values values_of(const LaunchedRun& run) {
  Values values;
  for (const StrategyField& field : strategy_fields) values[std::string(field.name)] = default_of(field);
  for (const LaunchSetting& setting : run.strategy) values[setting.field] = setting.value;
  // A layout in Megatron-Core's words also says how many virtual stages a rank has.
  std::string& stages = values.at("stage_layers");
  if (megatron_stages(stages)) {
    Strategy strategy;
    Workload workload;
    apply({"pipeline_parallel", values.at("pipeline_parallel")}, strategy, workload);
    apply(Edit{"stage_layers", stages}, strategy, workload);
    stages = value_of(*find_field("stage_layers"), strategy, workload);
    values.at("virtual_pipeline") = value_of(*find_field("virtual_pipeline"), strategy, workload);
  }
  return values;
}

// The last word of a setting's name as it stands in a line: "local_batch_size" of "training.local_batch_size: 2".
std::string name_in(const LaunchSetting& setting) {
  const std::string key = setting.written.substr(0, setting.written.find_first_of(" =:"));
  return key.substr(key.find_last_of('.') + 1);
}

// Tries texts of a file until one reads as wanted.
class Patcher {
 public:
  Patcher(std::string source, std::string text, LaunchOptions options, const LaunchedRun& run,
          const Edits& edits)
      : source_(std::move(source)),
        text_(std::move(text)),
        options_(std::move(options)),
        run_(run),
        before_(values_of(run)) {
    for (const Edit& edit : edits) edited_.insert(edit.field);
    // Follow from other fields, or are set by a framework together with them.
    edited_.insert({"data_parallel", "schedule", "microbatch_group_size"});
    if (edited_.contains("tensor_parallel")) edited_.insert("sequence_parallel");
    // A policy resets what goes with another one.
    if (edited_.contains("recompute")) {
      for (const std::string_view name :
           {"recompute_layers", "recompute_method", "recompute_ops", "recompute_window"}) {
        if (!edited_.contains(name)) before_[std::string(name)] = default_of(*find_field(name));
      }
    }
  }

  // Makes one edit. Returns whether a text was found.
  bool make(const Edit& edit) {
    if (reads_as(edit, text_of(lines_))) return true;
    const LaunchSetting* const setting = setting_of(edit.field);
    return (setting != nullptr && change(edit, *setting)) || change_elsewhere(edit) || add(edit);
  }

  bool holds(const Edits& edits) const {
    const std::string text = text_of(lines_);
    return std::all_of(edits.begin(), edits.end(),
                       [&](const Edit& edit) { return reads_as(edit, text, true); }) &&
           others_stay(text);
  }

  void start() {
    const std::vector<std::string_view> lines = ended_lines(text_);
    lines_.assign(lines.begin(), lines.end());
  }
  [[nodiscard]] std::string text() const { return text_of(lines_); }

 private:
  const LaunchSetting* setting_of(std::string_view field) const {
    const LaunchSetting* const found = find_setting(run_, field);
    return found == nullptr || !is_in_file(*found) ? nullptr : found;
  }

  bool is_in_file(const LaunchSetting& setting) const {
    return setting.at.line > 0 && !setting.written.empty() && source_.starts_with(setting.at.file);
  }

  // Whether the text gives the field of an edit its value and leaves those that no edit names. A data-parallel size
  // follows where it is not written.
  // `of_job`: on as many GPUs, which need not hold before the last edit.
  bool reads_as(const Edit& edit, const std::string& text, bool of_job = false) const {
    LaunchOptions options = options_;
    options.text = text;
    try {
      const LaunchedRun now = read_launched_run(source_, options);
      const Values values = values_of(now);
      const bool follows = edit.field == "data_parallel" &&
                           std::none_of(now.strategy.begin(), now.strategy.end(),
                                        [](const LaunchSetting& it) { return it.field == "data_parallel"; });
      if (!follows && values.at(edit.field) != edit.value) return false;
      if (now.accumulation != run_.accumulation) return false;
      if (now.stack != run_.stack && !same_choices(now)) return false;
      if (of_job && now.devices != run_.devices) return false;
      if (of_job && !std::all_of(now.refusals.begin(), now.refusals.end(), [&](const LaunchRefusal& one) {
            return std::any_of(run_.refusals.begin(), run_.refusals.end(), [&](const LaunchRefusal& other) {
              return other.fields == one.fields && other.source == one.source;
            });
          }))
        return false;
      return now.software == run_.software && now.model == run_.model &&
             std::all_of(values.begin(), values.end(), [&](const auto& value) {
               return edited_.contains(value.first) || value.second == before_.at(value.first);
             });
    } catch (const InputError&) {
      return false;
    }
  }

  // Whether the script's other runs, with which this one may share variables, start as before.
  bool others_stay(const std::string& text) const {
    constexpr std::size_t most_runs = 20;
    if (run_.runs > most_runs) return false;
    for (std::size_t other = 1; other <= run_.runs; ++other) {
      if (other != options_.run && other_run(other, text) != other_run(other, text_)) return false;
    }
    return true;
  }

  std::optional<LaunchedRun> other_run(std::size_t other, const std::string& text) const {
    LaunchOptions options = options_;
    options.run = other;
    options.text = text;
    try {
      return without_places(read_launched_run(source_, options));
    } catch (const InputError&) {
      return std::nullopt;
    }
  }

  bool same_choices(const LaunchedRun& now) const {
    return std::equal(now.stack.begin(), now.stack.end(), run_.stack.begin(), run_.stack.end(),
                      [](const LaunchSetting& one, const LaunchSetting& other) {
                        return one.field == other.field && one.value == other.value;
                      });
  }

  bool try_lines(const Edit& edit, Lines lines) {
    if (!reads_as(edit, text_of(lines))) return false;
    lines_ = std::move(lines);
    return true;
  }

  // Puts each word of the new value in the place of the old one in a line, from a place on.
  bool replace_in(const Edit& edit, std::size_t line, std::string_view old, std::size_t from) {
    for (std::size_t at = find_word(lines_[line], old, from); at != std::string::npos;
         at = find_word(lines_[line], old, at + 1)) {
      for (const std::string& word : in_style_of(old, value_words(edit.value))) {
        Lines lines = lines_;
        lines[line].replace(at, old.size(), word);
        if (try_lines(edit, std::move(lines))) return true;
      }
    }
    return false;
  }

  bool replace_words(const Edit& edit, std::size_t line, const std::string& old_value, std::size_t from) {
    const std::vector<std::string> olds = value_words(old_value);
    return std::any_of(olds.begin(), olds.end(),
                       [&](const std::string& old) { return replace_in(edit, line, old, from); });
  }

  // Where the setting is written, or where a variable in its line gets its value.
  bool change(const Edit& edit, const LaunchSetting& setting) {
    const std::size_t line = line_of(setting);
    if (line >= lines_.size()) return false;
    const std::string last = name_in(setting);
    const std::size_t at = lines_[line].find(last);
    const std::size_t from = at == std::string::npos ? 0 : at;
    // Megatron-LM has no word for it.
    const bool leaves =
        edit.field == "recompute" && edit.value == "none" && setting.written.starts_with("--recompute");
    if (leaves) return remove(edit, setting);
    if (replace_words(edit, line, setting.value, from)) return true;
    for (const std::string& name : variables_in(std::string_view(lines_[line]).substr(from))) {
      for (std::size_t other = 0; other < lines_.size(); ++other) {
        const std::size_t set = lines_[other].find(name + "=");
        if (set != std::string::npos && replace_words(edit, other, setting.value, set)) return true;
      }
    }
    return edit.value == default_of(*find_field(edit.field)) && remove(edit, setting);
  }

  std::size_t line_of(const LaunchSetting& setting) const {
    // A line that an edit before this one has moved is near its old place.
    const auto line = static_cast<std::size_t>(setting.at.line - 1);
    const std::string last = name_in(setting);
    for (std::size_t off = 0; off < 8; ++off) {
      if (line + off < lines_.size() && lines_[line + off].find(last) != std::string::npos) return line + off;
      if (off <= line && line - off < lines_.size() && lines_[line - off].find(last) != std::string::npos)
        return line - off;
    }
    return line;
  }

  // Takes a setting out that is alone in its line, or its words out of the line.
  bool remove(const Edit& edit, const LaunchSetting& setting) {
    const std::size_t line = line_of(setting);
    const std::size_t at = lines_[line].find(setting.written);
    if (at == std::string::npos) return false;
    Lines lines = lines_;
    erase_words(lines, line, at, setting.written.size());
    return try_lines(edit, std::move(lines));
  }

  // In a setting that stands for another field, too: torchtitan's data_parallel_shard_degree.
  bool change_elsewhere(const Edit& edit) {
    const std::string& old = before_.at(edit.field);
    return std::any_of(run_.strategy.begin(), run_.strategy.end(), [&](const LaunchSetting& setting) {
      return is_in_file(setting) && setting.field != edit.field &&
             find_word(setting.written, old) != std::string::npos &&
             replace_words(edit, line_of(setting), old, 0);
    });
  }

  // As a setting of its own beside another of the file.
  bool add(const Edit& edit) {
    if (edit.value == default_of(*find_field(edit.field))) return false;
    if (edit.field == "stage_layers") return add_layout(edit);
    return std::any_of(run_.strategy.begin(), run_.strategy.end(), [&](const LaunchSetting& beside) {
      return is_in_file(beside) && add_beside(edit, beside);
    });
  }

  // As Megatron-Core's layout, in the place of the flag of virtual stages, which it gives too. The flags
  // that count the ends as layers exclude it [Megatron-LM, training/arguments.py:928;
  // core/transformer/transformer_config.py:2251].
  bool add_layout(const Edit& edit) {
    const LaunchSetting* const pipeline = setting_of("pipeline_parallel");
    Strategy strategy;
    Workload workload;
    if (!has_flags() || pipeline == nullptr || !apply(edit, strategy, workload).empty()) return false;
    const std::string layout = megatron_layout(strategy.stage_layers, run_.model->mtp_layers);
    const Lines before = lines_;
    erase_switch(lines_, "--account-for-embedding-in-pipeline-split");
    erase_switch(lines_, "--account-for-loss-in-pipeline-split");
    const LaunchSetting* const virtual_stages = setting_of("virtual_pipeline");
    const auto takes = [&](std::string_view quote) {
      const std::string flag = fmt::format("--pipeline-model-parallel-layout {0}{1}{0}", quote, layout);
      return virtual_stages != nullptr ? put_in_place_of(*virtual_stages, edit, flag)
                                       : add_flag(edit, flag, *pipeline, line_of(*pipeline));
    };
    // A bar ends a command unless it is quoted. Within quotes it is quoted already: more would end them, or
    // become a part of the value where no shell reads it again. Only a shell that drops or refuses patterns
    // of no file needs them there.
    const bool drops_patterns = std::any_of(lines_.begin(), lines_.end(), [](const std::string& line) {
      return line.find("nullglob") != std::string::npos || line.find("failglob") != std::string::npos;
    });
    if (drops_patterns ? takes("\"") : takes("") || takes("\"") || takes("'")) return true;
    lines_ = before;
    return false;
  }

  // Puts a flag in the place of a setting's flag and value, which stand in one line.
  bool put_in_place_of(const LaunchSetting& setting, const Edit& edit, const std::string& flag) {
    const std::size_t line = line_of(setting);
    if (line >= lines_.size()) return false;
    const std::string& old = lines_[line];
    const std::string name = setting.written.substr(0, setting.written.find_first_of(" ="));
    const std::size_t at = old.find(name);
    if (at == std::string::npos) return false;
    const std::size_t value = old.find_first_not_of(" =\t", at + name.size());
    const std::size_t end = std::min(old.find_first_of(" \t\r\n\\\"')", value), old.size());
    if (value >= end) return false;
    Lines lines = lines_;
    lines[line].replace(at, end - at, flag);
    return try_lines(edit, std::move(lines));
  }

  bool add_beside(const Edit& edit, const LaunchSetting& beside) {
    const std::size_t line = line_of(beside);
    const FieldNames* const names = names_of(edit.field);
    if (line >= lines_.size() || names == nullptr) return false;
    if (beside.written.starts_with("--"))
      return has_flags() && add_flag(edit, flag_of(edit, *names), beside, line);
    if (!is_tree()) return false;  // overrides on a command line have groups, which a key must be in
    return std::any_of(names->keys.begin(), names->keys.end(), [&](std::string_view key) {
      const std::vector<std::string> words = value_words(edit.value);
      return !key.empty() && std::any_of(words.begin(), words.end(), [&](const std::string& word) {
        return add_key(edit, std::string(key), word, beside, line);
      });
    });
  }

  // Whether the script's program has the flags of the table: forks and older releases have others.
  [[nodiscard]] bool has_flags() const {
    return run_.framework == "Megatron-LM" && run_.software == "megatron-core-2025";
  }

  [[nodiscard]] bool is_tree() const {
    return source_.ends_with(".toml") || source_.ends_with(".yaml") || source_.ends_with(".yml") ||
           source_.ends_with(".json");
  }

  static std::string flag_of(const Edit& edit, const FieldNames& names) {
    const std::string flag_name = "--" + std::string(names.megatron);
    if (edit.field == "recompute" && edit.value == "full")
      return flag_name + " full --recompute-method uniform --recompute-num-layers 1";
    return edit.value == "yes" ? flag_name : flag_name + " " + edit.value;
  }

  bool add_flag(const Edit& edit, const std::string& added, const LaunchSetting& beside, std::size_t line) {
    if (line >= lines_.size()) return false;
    const std::string& old = lines_[line];
    const std::string flag = beside.written.substr(0, beside.written.find(' '));
    const std::size_t at = old.find(flag);
    if (at == std::string::npos) return false;
    if (indent_of(old).size() == at) {
      const bool continued = is_continued(old) || (line > 0 && is_continued(lines_[line - 1]));
      Lines lines = lines_;
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(line),
                   fmt::format("{}{}{}{}", indent_of(old), added, continued ? " \\" : "", line_end(old)));
      if (try_lines(edit, std::move(lines))) return true;
    }
    Lines lines = lines_;
    lines[line].insert(at, added + " ");
    return try_lines(edit, std::move(lines));
  }

  bool add_key(const Edit& edit, const std::string& key, const std::string& word, const LaunchSetting& beside,
               std::size_t line) {
    const std::string& old = lines_[line];
    const std::string name = name_in(beside);
    const std::size_t at = find_word(old, name);
    if (at == std::string::npos) return false;
    const std::size_t after = at + name.size();
    const std::size_t value = old.find_first_not_of(" \t:=\"'", after);
    if (value == std::string::npos) return false;
    // Quotes about the key and the sign between key and value are as in the line beside.
    std::string sign = old.substr(after, value - after);
    const bool number = word.find_first_not_of("0123456789") == std::string::npos;
    if (number) std::erase_if(sign, [at = std::size_t{0}](char c) mutable { return at++ > 0 && c == '"'; });
    const bool json = at > 0 && old[at - 1] == '"';
    const std::string added =
        old.substr(0, at) + key + sign + word + (json ? "," : "") + std::string(line_end(old));
    Lines lines = lines_;
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(line), added);
    return try_lines(edit, std::move(lines));
  }

  std::string source_;
  std::string text_;
  LaunchOptions options_;
  const LaunchedRun& run_;
  Values before_;
  std::set<std::string, std::less<>> edited_;
  Lines lines_;
};

}  // namespace

std::optional<std::string> patched_launch(const std::string& source, const LaunchedRun& run,
                                          const LaunchOptions& options, const Edits& edits) {
  // torchtitan cuts local_batch_size into the microbatches of a pipeline: it would have to follow.
  const bool cuts = run.framework == "torchtitan" &&
                    std::any_of(edits.begin(), edits.end(),
                                [](const Edit& edit) { return edit.field == "pipeline_parallel"; });
  // Where a file states accumulation, another microbatch is another global batch.
  const bool batches = run.accumulation && std::any_of(edits.begin(), edits.end(), [](const Edit& edit) {
                         return edit.field == "micro_batch" || edit.field == "data_parallel";
                       });
  if (cuts || batches) return std::nullopt;
  Patcher patcher(source, options.text ? *options.text : launch_text(source), options, run, edits);
  // A file may be read only once some of the edits are made, so that their order matters.
  for (Edits order : {edits, Edits(edits.rbegin(), edits.rend())}) {
    patcher.start();
    if (std::all_of(order.begin(), order.end(), [&](const Edit& edit) { return patcher.make(edit); }) &&
        patcher.holds(edits))
      return patcher.text();
  }
  return std::nullopt;
}

}  // namespace headroom
