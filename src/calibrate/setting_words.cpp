#include "setting_words.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

namespace headroom {
namespace {

struct SettingWord {
  std::string_view text;  // with blanks for - _ and =
  void (*set)(RunSettings& settings, bool on);
};

void set_tensor(RunSettings& settings, bool on) {
  settings.overlap_tensor_parallel = on ? TensorOverlap::full : TensorOverlap::backward;
}
void set_gradients(RunSettings& settings, bool on) { settings.overlap_grad_reduce = on; }
void set_parameters(RunSettings& settings, bool on) { settings.overlap_param_gather = on; }
void set_transfers(RunSettings& settings, bool on) { settings.overlap_p2p = on; }
void set_compiled(RunSettings& settings, bool on) {
  settings.launches = on ? Launches::compiled : Launches::eager;
}
void set_eager(RunSettings& settings, bool on) { set_compiled(settings, !on); }
void set_half_sums(RunSettings& settings, bool /*on*/) { settings.gradient_dtype = Dtype::half; }

constexpr std::array setting_words{
    SettingWord{"tp comm overlap", set_tensor},           // Megatron-LM; NeMo puts ub_ before it
    SettingWord{"tp userbuffer", set_tensor},             //
    SettingWord{"overlap grad reduce", set_gradients},    // Megatron-LM
    SettingWord{"overlap grad sync", set_gradients},      // NeMo
    SettingWord{"overlap param gather", set_parameters},  // Megatron-LM
    SettingWord{"overlap param sync", set_parameters},    // NeMo
    SettingWord{"overlap grad sync/param sync", set_parameters},
    SettingWord{"overlap p2p", set_transfers},  // both
    SettingWord{"p2p overlap", set_transfers},
    SettingWord{" async tp ", set_tensor},  // torchtitan, enable_async_tensor_parallel
    SettingWord{"compile", set_compiled},   // torch.compile, --compile.enable, compiled
    SettingWord{" eager ", set_eager},
    SettingWord{"mixed precision pure", set_half_sums},  // Composer's, which reduces in 16 bits
};

// Returns lower-case words with one blank between them and at either end.
std::string plain(std::string_view text) {
  std::string result = " ";
  for (const char c : text) {
    const bool blank = c == '-' || c == '_' || c == '=' || std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!blank) {
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (result.back() != ' ') {
      result += ' ';
    }
  }
  return result + ' ';
}

bool is_off(const std::string& clause) {
  constexpr std::array<std::string_view, 7> offs{" false ",   " off ",      " no ",     " not ",
                                                 " without ", " disabled ", " disable "};
  return std::any_of(offs.begin(), offs.end(),
                     [&](std::string_view off) { return clause.find(off) != std::string::npos; });
}

RunSettings settings_of(std::string_view words) {
  RunSettings settings;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find_first_of(",;()\n"), words.size());
    const std::string clause = plain(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
    for (const auto& [text, set] : setting_words) {
      if (clause.find(text) != std::string::npos) set(settings, !is_off(clause));
    }
  }
  return settings;
}

}  // namespace

RunSettings settings_of_words(std::string_view words, std::string_view caveats) {
  RunSettings settings = settings_of(words);
  if (const auto launches = settings_of(caveats).launches) settings.launches = launches;
  return settings;
}

}  // namespace headroom
