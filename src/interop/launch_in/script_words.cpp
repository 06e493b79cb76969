#include "interop/launch_in/script_words.hpp"

#include <algorithm>
#include <utility>

#include "interop/launch_in/megatron_keys.hpp"
#include "interop/launch_in/trainer_common.hpp"
#include "io/text.hpp"

namespace headroom {

FilePlace file_place(const shell::Followed& script, shell::Place at) {
  return {at.file < script.files.size() ? script.files[at.file] : std::string(), at.line};
}

std::string shown(const shell::Followed& script, std::string_view text) {
  return shown(script, text, [](std::string_view name, std::string_view) { return std::string(name); });
}

std::string shown(const shell::Followed& script, std::string_view text, const ShowUnknown& show) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != shell::mark_start) {
      result += text[at];
      continue;
    }
    const std::size_t end = std::min(text.find(shell::mark_end, at), text.size() - 1);
    result += show(script.unknowns[shell::marks_in(text.substr(at, end - at)).front()].text, result);
    at = end;
  }
  return result;
}

namespace {

std::string advice_for(const shell::Unknown& unknown) {
  switch (unknown.source) {
    case shell::Source::argument: return ": give the arguments of the script after --";
    case shell::Source::environment: return ": give it with --env NAME=VALUE";
    case shell::Source::output: break;
  }
  const std::string by_name = unknown.name.empty() ? "" : ": give it with --env " + unknown.name + "=VALUE";
  return ", which only a run knows" + by_name;
}

}  // namespace

std::string needs(const shell::Followed& script, std::string_view text) {
  std::string result;
  std::string advice;  // of the last one, which follows what needs the same
  for (const std::size_t mark : shell::marks_in(text)) {
    const shell::Unknown& unknown = script.unknowns[mark];
    std::string next = advice_for(unknown);
    if (!result.empty()) result += (next == advice ? "" : advice) + ", ";
    const bool has_name = unknown.name.empty() || unknown.text == "$" + unknown.name;
    result += printable(unknown.text) + (has_name ? "" : " (" + unknown.name + ")");
    advice = std::move(next);
  }
  return result.empty() ? result : "needs " + result + advice;
}

namespace {

bool is_flag(std::string_view word) {
  if (!word.starts_with("--")) return false;
  return word.size() > 2 && ((word[2] >= 'a' && word[2] <= 'z') || (word[2] >= 'A' && word[2] <= 'Z'));
}

std::string without_quotes(std::string text) {
  if (text.size() > 1 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front())
    return text.substr(1, text.size() - 2);
  return text;
}

// What stands behind a switch of Megatron-LM is none of its values. Trainers name a file with --deepspeed.
bool takes_no_value(const Written& setting) {
  return is_megatron_switch(setting.name) && setting.name != "deepspeed";
}

// Hydra's flags take one value, and overrides of its configuration may follow any value: "model.layers=32".
bool has_hydra_value(const Written& flag) {
  return !flag.values.empty() &&
         (flag.name == "config_name" || flag.name == "config_path" || flag.name == "config_dir");
}
bool is_dotted_name(std::string_view name) {
  while (name.starts_with('+') || name.starts_with('~')) name.remove_prefix(1);
  return name.find('.') != std::string_view::npos && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                  c == '.';
         });
}

}  // namespace

std::vector<Written> written_in(const shell::Followed& script, const std::vector<shell::Value>& words,
                                std::vector<shell::Value>& extra) {
  std::vector<Written> all;
  bool complete = true;  // the last flag has its value: --flag=value
  const auto close = [&](Written& setting) {
    std::string marks;
    if (setting.name == "deepspeed" || setting.name == "deepspeed_config") {
      // In a folder that only a run knows: its name may say the stage.
      for (std::string& value : setting.values) {
        const std::string base = value.substr(value.rfind('/') + 1);
        const bool is_named = shell::is_known(base) && !stage_in_name(base).empty();
        if (!shell::is_known(value) && is_named && !script.written_files.contains(value)) value = base;
      }
    }
    for (const std::string& value : setting.values) {
      if (!shell::is_known(value)) marks += value;
    }
    if (!marks.empty()) setting.unknown = needs(script, marks);
    for (std::string& value : setting.values) value = shown(script, value);
    for (const std::string& value : setting.values)
      setting.as_written += (setting.as_written.ends_with('=') ? "" : " ") + value;
  };
  for (const shell::Value& word : words) {
    const std::string& text = word.text();
    if (is_flag(text)) {
      if (!all.empty()) close(all.back());
      const std::size_t equals = text.find('=');
      Written setting{text.substr(2, equals == std::string::npos ? equals : equals - 2),
                      {},
                      text.substr(0, equals),
                      file_place(script, word.place()),
                      ""};
      std::replace(setting.name.begin(), setting.name.end(), '-', '_');
      complete = equals != std::string::npos;
      if (complete) setting.values.push_back(without_quotes(text.substr(equals + 1)));
      all.push_back(std::move(setting));
      continue;
    }
    const std::size_t equals = text.find('=');
    const std::string_view before = std::string_view(text).substr(0, equals);
    const bool begins = all.empty() || complete || all.back().as_written.find("--") != 0 ||
                        has_hydra_value(all.back()) || (!all.back().values.empty() && is_dotted_name(before));
    const bool overrides = equals != std::string::npos && equals > 0 && shell::is_known(before) && begins;
    if (overrides) {
      if (!all.empty()) close(all.back());
      std::string name = text.substr(0, equals);
      while (name.starts_with('+') || name.starts_with('~')) name.erase(0, 1);
      all.push_back(
          {name, {without_quotes(text.substr(equals + 1))}, "", file_place(script, word.place()), ""});
      all.back().as_written = name + "=";
      continue;
    }
    // A variable behind a switch or behind a value: further arguments, if any.
    const bool alone = all.empty() || (!shell::is_known(text) && shell::only_mark(text) &&
                                       (takes_no_value(all.back()) || !all.back().values.empty()));
    if (alone) {
      extra.push_back(word);
    } else if (!text.empty() || (all.back().values.empty() && !takes_no_value(all.back()))) {
      all.back().values.push_back(without_quotes(text));
    }
  }
  if (!all.empty()) close(all.back());
  return all;
}

}  // namespace headroom
