#include <algorithm>
#include <charconv>
#include <utility>

#include "headroom/model/transformer.hpp"
#include "interop/launch_in/megatron_model.hpp"

namespace headroom {
namespace {

// A list of Python: [0]*3+[1]*58, [0,1], with brackets around.
class LayerExpression {
 public:
  explicit LayerExpression(std::string_view text) : text_(text) {}

  std::optional<std::vector<int>> run(std::size_t most) {
    most_ = most;
    auto result = sum();
    skip();
    if (!result || at_ < text_.size()) return std::nullopt;
    return result;
  }

 private:
  using List = std::optional<std::vector<int>>;
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\'' || text_[at_] == '"')) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  List sum() {
    List left = product();
    while (left && take('+')) {
      const List right = product();
      if (!right || left->size() + right->size() > most_) return std::nullopt;
      left->insert(left->end(), right->begin(), right->end());
    }
    return left;
  }
  List product() {
    List list = primary();
    while (list && take('*')) {
      const auto times = number();
      if (!times || *times < 0 || list->size() * static_cast<std::size_t>(*times) > most_)
        return std::nullopt;
      std::vector<int> repeated;
      repeated.reserve(list->size() * static_cast<std::size_t>(*times));
      for (std::int64_t i = 0; i < *times; ++i) repeated.insert(repeated.end(), list->begin(), list->end());
      list = std::move(repeated);
    }
    return list;
  }
  List primary() {
    if (++depth_ > 50) return std::nullopt;
    if (take('(')) {
      List inside = sum();
      if (!take(')')) return std::nullopt;
      --depth_;
      return inside;
    }
    if (!take('[')) return std::nullopt;
    std::vector<int> items;
    while (!take(']')) {
      const auto value = number();
      if (!value || items.size() >= most_) return std::nullopt;
      items.push_back(*value != 0 ? 1 : 0);
      take(',');
    }
    --depth_;
    return items;
  }
  std::optional<std::int64_t> number() {
    skip();
    std::size_t end = at_;
    while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
    const auto value = whole_number(text_.substr(at_, end - at_));
    at_ = end;
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t most_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

const Written* MegatronSettings::find(std::string_view name) const {
  const auto found = std::find_if(written_.rbegin(), written_.rend(),
                                  [&](const Written& setting) { return setting.name == name; });
  return found == written_.rend() || (found->unknown.empty() && is_null(*found)) ? nullptr : &*found;
}

const Written* MegatronSettings::first(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    if (const Written* const setting = find(name)) return setting;
  }
  return nullptr;
}

bool MegatronSettings::tells(std::string_view name) const { return find(name) != nullptr; }

bool MegatronSettings::is(std::string_view name) const {
  const Written* const setting = find(name);
  return setting != nullptr && is_on(*setting);
}

std::string MegatronSettings::text(std::string_view name) const {
  const Written* const setting = find(name);
  return setting == nullptr || !setting->unknown.empty() ? std::string() : text_of_values(*setting);
}

std::optional<std::int64_t> MegatronSettings::number(const Written& setting) const {
  if (!setting.unknown.empty() || setting.values.empty()) return std::nullopt;
  return whole_number(setting.values.front());
}

std::optional<std::int64_t> MegatronSettings::number(std::string_view name) const {
  const Written* const setting = find(name);
  return setting == nullptr ? std::nullopt : number(*setting);
}

bool MegatronSettings::has_experts() const {
  const Written* const count = first({"num_experts", "num_moe_experts"});
  return count != nullptr && number(*count).value_or(0) > 1;
}

void MegatronSettings::tell_unknown(const Written& setting, RunBuilder& run, std::string_view field) const {
  run.unresolved(setting, field);
}

std::optional<std::vector<int>> expert_layers(std::string_view frequency, std::int64_t layers) {
  std::string text(frequency);
  std::erase_if(text, [](char c) { return c == '\'' || c == '"' || c == '\\'; });
  if (const auto every = whole_number(text)) {
    if (*every < 1) return std::nullopt;
    std::vector<int> which(static_cast<std::size_t>(layers));
    for (std::size_t i = 0; i < which.size(); i += static_cast<std::size_t>(*every)) which[i] = 1;
    return which;
  }
  return LayerExpression(text).run(static_cast<std::size_t>(most_layers));
}

}  // namespace headroom
