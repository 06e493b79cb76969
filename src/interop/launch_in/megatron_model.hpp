// The model and the pipeline stages of Megatron-LM's arguments.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interop/launch_in/setting.hpp"

namespace headroom {

// Nothing if the text is no number.
std::optional<std::int64_t> whole_number(std::string_view text);

// Arguments by name; the last of each holds.
class MegatronSettings {
 public:
  explicit MegatronSettings(const std::vector<Written>& written) : written_(written) {}

  [[nodiscard]] const Written* find(std::string_view name) const;
  [[nodiscard]] const Written* first(std::initializer_list<std::string_view> names) const;
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
  // Given, and not null.
  [[nodiscard]] bool tells(std::string_view name) const;
  // Given, and on.
  [[nodiscard]] bool is(std::string_view name) const;
  [[nodiscard]] std::string text(std::string_view name) const;
  [[nodiscard]] std::optional<std::int64_t> number(const Written& setting) const;
  // Of an argument that is given and known.
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view name) const;
  [[nodiscard]] bool has_experts() const;
  void tell_unknown(const Written& setting, RunBuilder& run, std::string_view field = {}) const;

 private:
  const std::vector<Written>& written_;
};

void read_megatron_model(const MegatronSettings& asked, const std::string& program, RunBuilder& run);

// Reads the vocabulary that is given, or the tokenizer's. Expects the other members, by which a model is known.
void read_vocabulary(const MegatronSettings& asked, std::int64_t layers, RunBuilder& run);

// Attention of every layer, but for its windows.
void read_attention(const MegatronSettings& asked, RunBuilder& run);

// Members of experts, under the kind of layers that has them ("layer_kinds/moe/") or of all ("").
void read_experts(const MegatronSettings& asked, const std::string& at, RunBuilder& run);

// The layers, where they are of several kinds by their experts and windows.
void read_layers(const MegatronSettings& asked, const Written& setting, std::int64_t layers, RunBuilder& run);

// The window of every layer with attention, where layers are not read one by one.
void read_window(const MegatronSettings& asked, RunBuilder& run);

// CUDA graphs, and the modules that they record.
void read_graphs(const MegatronSettings& asked, RunBuilder& run);

// gpt-oss's activation: --quick-geglu with a clamp.
void read_clamp(const MegatronSettings& asked, RunBuilder& run);

// The letters of the layers of a hybrid model, by its pattern or the shares of its kinds; empty: it is none, or they are not
// known.
std::string hybrid_letters(const MegatronSettings& asked, const std::string& program, RunBuilder& run);

// Layers of each stage. Expects the model's members.
void read_stages(const MegatronSettings& asked, RunBuilder& run);

// 1 for each layer with experts, of --moe-layer-freq: "2", "([0]*3+[1]*58)", "[0,1,1]"; lists of
// --window-attn-skip-freq are alike. Nothing if it is neither.
std::optional<std::vector<int>> expert_layers(std::string_view frequency, std::int64_t layers);

}  // namespace headroom
