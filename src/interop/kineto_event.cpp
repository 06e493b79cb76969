#include "interop/kineto_event.hpp"

#include <utility>

namespace headroom {
namespace {

// "[0, 1, 2]", or such a list; "[0, 8, ..., 120]" where it is long.
std::vector<std::int64_t> ranks_at(const Json& object, const char* key) {
  std::vector<std::int64_t> ranks;
  const Json* value = member(object, key);
  if (value != nullptr && value->is_array()) {
    for (const Json& one : *value) {
      if (one.is_number_integer()) ranks.push_back(one.get<std::int64_t>());
    }
  }
  if (value == nullptr || !value->is_string()) return ranks;
  const std::string text = value->get<std::string>();
  std::int64_t rank = 0;
  bool digits = false;
  for (const char c : text) {
    if (c >= '0' && c <= '9' && rank < (std::int64_t{1} << 32)) {
      rank = 10 * rank + (c - '0');
      digits = true;
    } else {
      if (digits) ranks.push_back(rank);
      rank = 0;
      digits = false;
      if (c == '.') break;
    }
  }
  return ranks;
}

// Whether a list of how much goes to each rank holds different amounts: "[4096, 4100]".
bool differ(const std::vector<std::int64_t>& splits) {
  for (const std::int64_t split : splits) {
    if (split != splits.front()) return true;
  }
  return false;
}

}  // namespace

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string text_at(const Json& object, const char* key) {
  const Json* value = member(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::optional<double> number_at(const Json& object, const char* key) {
  const Json* value = member(object, key);
  if (value != nullptr && value->is_number()) return value->get<double>();
  return std::nullopt;
}

std::int64_t count_at(const Json& object, const char* key, std::int64_t otherwise) {
  const Json* value = member(object, key);
  return value != nullptr && value->is_number_integer() ? value->get<std::int64_t>() : otherwise;
}

std::optional<CollectiveCall> collective_call(const Json& args) {
  std::string name = text_at(args, "Collective name");
  if (name.empty()) return std::nullopt;
  return CollectiveCall{.name = std::move(name),
                        .type = text_at(args, "dtype"),
                        .elements_in = count_at(args, "In msg nelems", 0),
                        .elements_out = count_at(args, "Out msg nelems", 0),
                        .ranks = count_at(args, "Group size", 0),
                        .first_ranks = ranks_at(args, "Process Group Ranks"),
                        .uneven = differ(ranks_at(args, "In split size"))};
}

OperatorCall operator_call(const std::string& name, const Json& args) {
  OperatorCall call{.name = name, .sizes = {}, .types = {}, .values = {}};
  if (const Json* all = member(args, "Input Dims"); all != nullptr && all->is_array()) {
    for (const Json& one : *all) {
      std::vector<std::int64_t>& sizes = call.sizes.emplace_back();
      if (!one.is_array()) continue;
      sizes.reserve(one.size());
      for (const Json& size : one) {
        if (!size.is_number_integer()) {  // a list of tensors
          sizes.clear();
          break;
        }
        sizes.push_back(size.get<std::int64_t>());
      }
    }
  }
  const auto texts = [&](const char* key, std::vector<std::string>& into) {
    const Json* all = member(args, key);
    if (all == nullptr || !all->is_array()) return;
    into.reserve(all->size());
    for (const Json& one : *all) into.push_back(one.is_string() ? one.get<std::string>() : std::string());
  };
  texts("Input type", call.types);
  texts("Concrete Inputs", call.values);
  return call;
}

}  // namespace headroom
