// Words of Megatron's configuration: with dashes they are Megatron-LM's flags, and behind their section
// Megatron-Bridge's overrides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headroom/core/joined.hpp"
#include "headroom/hardware/software.hpp"

namespace headroom {

// Returns whether the stack's layers are Transformer Engine's, which keeps dummy gradients for them.
inline bool runs_transformer_engine(const Software& software) {
  return software.memory.dummy_gradients == DummyGradients::kept_by_shape;
}

class MegatronWords {
 public:
  explicit MegatronWords(bool bridge) : bridge_(bridge) {}

  void add(std::string_view section, std::string_view name, std::string_view value) {
    std::string word;
    if (bridge_) {
      word.append(section).append(".").append(name).append("=").append(value);
    } else {
      word.append("--").append(name);
      std::replace(word.begin(), word.end(), '_', '-');
      word.append(value.empty() ? "" : " ").append(value);
    }
    words_.push_back(std::move(word));
  }
  void on(std::string_view section, std::string_view name) { add(section, name, bridge_ ? "true" : ""); }

  // Values that a flag has behind it one after the other, and an override as a list.
  [[nodiscard]] std::string listed(const std::vector<std::string>& values) const {
    return bridge_ ? "[" + joined(values, ",") + "]" : joined(values, " ");
  }
  // A value with characters that the shell takes apart, and Hydra's overrides too: these need quotes of their own.
  [[nodiscard]] std::string quoted(const std::string& value) const {
    return bridge_ ? "\"'" + value + "'\"" : "'" + value + "'";
  }
  [[nodiscard]] bool bridge() const { return bridge_; }

  std::vector<std::string> take() { return std::move(words_); }

 private:
  bool bridge_;
  std::vector<std::string> words_;
};

}  // namespace headroom
