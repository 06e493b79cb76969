#include "headroom/parallel/layout_text.hpp"

#include <charconv>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include "headroom/core/reading.hpp"
#include "headroom/model/hybrid_pattern.hpp"

namespace headroom {
namespace {

constexpr std::size_t longest_layout = 4 * most_layers;  // letters and bars, with repeats expanded

const char* const layout_rule =
    "must be a layout such as \"Et*3|(tt|)*29mL\": E the embedding, t a layer, m multi-token prediction, L "
    "the loss, | between stages, x*n and (x)*n repeat";

// Expands the repeats of a layout.
class Unrolled {
 public:
  explicit Unrolled(std::string_view text) : rest_(text) {}

  // Returns the expanded text, or nothing if the text is not a layout.
  std::optional<std::string> whole() {
    std::optional<std::string> all = sequence(true);
    return all && rest_.empty() ? all : std::nullopt;
  }

 private:
  // Reads up to a closing parenthesis or the end. Parentheses do not nest.
  std::optional<std::string> sequence(bool outermost) {
    std::string all;
    while (!rest_.empty() && rest_.front() != ')') {
      const char letter = take();
      if (letter == ',') continue;
      std::string part(1, letter);
      if (letter == '(') {
        std::optional<std::string> inner = outermost ? sequence(false) : std::nullopt;
        if (!inner || rest_.empty()) return std::nullopt;
        take();  // the closing parenthesis
        part = std::move(*inner);
      } else if (std::string_view("EtmL|").find(letter) == std::string_view::npos) {
        return std::nullopt;
      }
      const std::optional<std::size_t> times = repeats();
      if (!times || all.size() + *times * part.size() > longest_layout) return std::nullopt;
      for (std::size_t i = 0; i < *times; ++i) all += part;
    }
    return all;
  }

  // Reads the repeat count that follows a part: 1 if there is none.
  std::optional<std::size_t> repeats() {
    if (rest_.empty() || rest_.front() != '*') return 1;
    take();
    std::size_t times = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), times);
    if (error != std::errc() || times < 1 || times > longest_layout) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return times;
  }

  char take() {
    const char first = rest_.front();
    rest_.remove_prefix(1);
    return first;
  }

  std::string_view rest_;
};

}  // namespace

std::variant<WrittenLayout, std::string> read_layout(std::string_view text) {
  const std::optional<std::string> letters = Unrolled(text).whole();
  if (!letters || letters->empty() || letters->front() != 'E' || letters->back() != 'L') return layout_rule;
  WrittenLayout layout{.stage_layers = {0}};
  for (const char letter : letters->substr(1, letters->size() - 2)) {
    switch (letter) {
      case '|':
        layout.mtp_beside_loss = layout.mtp_layers == 0;
        layout.stage_layers.push_back(0);
        break;
      case 't':
        if (layout.mtp_layers > 0) return "has a layer (t) behind multi-token prediction (m)";
        ++layout.stage_layers.back();
        break;
      case 'm': ++layout.mtp_layers; break;
      default: return std::string("has ") + letter + " twice";
    }
  }
  return layout;
}

std::optional<std::vector<std::int64_t>> megatron_stages(std::string_view text) {
  std::variant<WrittenLayout, std::string> layout = read_layout(text);
  if (auto* const written = std::get_if<WrittenLayout>(&layout)) return std::move(written->stage_layers);
  if (text.find('|') == std::string_view::npos || !hybrid_layers(text)) return std::nullopt;
  std::vector<std::int64_t> by_stage;
  for (const std::string_view stage : parts_of(text.substr(0, text.find('/')), '|'))
    by_stage.push_back(std::ssize(stage));
  return by_stage;
}

}  // namespace headroom
