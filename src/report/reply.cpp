#include "report/reply.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "headroom/core/error.hpp"
#include "io/strict_json.hpp"

namespace headroom {
namespace {

// Members of a reply that no other kind has.
struct KindMembers {
  ReplyKind kind;
  std::array<const char*, 2> members;
};

constexpr std::array<KindMembers, 5> kind_members{{{ReplyKind::plan, {"plans", "evaluated"}},
                                                   {ReplyKind::estimate, {"memory", "layout"}},
                                                   {ReplyKind::compare, {"before", "after"}},
                                                   {ReplyKind::frontier, {"policies", "points"}},
                                                   {ReplyKind::sweep, {"axes", "rows"}}}};

ReplyKind kind_of(const OrderedJson& reply, const std::string& name) {
  if (reply.is_object() && reply.value("format", OrderedJson()) == 2) {
    for (const auto& [kind, members] : kind_members) {
      const auto is_there = [&](const char* member) { return reply.contains(member); };
      if (std::all_of(members.begin(), members.end(), is_there)) return kind;
    }
  }
  throw InputError(name,
                   "is no reply that can be drawn: write one with --format json of headroom plan, estimate, "
                   "compare, frontier or sweep");
}

}  // namespace

ReadReply read_reply(std::string_view text, const std::string& name) {
  std::vector<Problem> problems;
  parse_json(text, name, problems);
  if (!problems.empty()) throw InputError(problems);
  ReadReply reply{.json = OrderedJson::parse(text)};
  reply.kind = kind_of(reply.json, name);
  const std::string of = text_in(reply.json, {"model", "name"});
  const std::string on = text_in(reply.json, {"system", "name"});
  reply.title = "headroom " + std::string(name_of(reply.kind));
  if (!of.empty()) reply.title += ": " + of + (on.empty() ? "" : " on " + on);
  return reply;
}

const OrderedJson* member_of(const OrderedJson& json, MemberPath path) {
  const OrderedJson* place = &json;
  for (const char* const member : path) {
    if (!place->is_object()) return nullptr;
    const auto found = place->find(member);
    if (found == place->end()) return nullptr;
    place = &*found;
  }
  return place;
}

std::optional<double> number_of(const OrderedJson& value) {
  constexpr double most = 1e18;
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  return number >= 0 && number <= most ? std::optional(number) : std::nullopt;
}

std::optional<double> number_in(const OrderedJson& json, MemberPath path) {
  const OrderedJson* const member = member_of(json, path);
  return member != nullptr ? number_of(*member) : std::nullopt;
}

std::string text_in(const OrderedJson& json, MemberPath path) {
  const OrderedJson* const member = member_of(json, path);
  return member != nullptr && member->is_string() ? member->get<std::string>() : std::string();
}

const OrderedJson& list_in(const OrderedJson& json, MemberPath path) {
  static const OrderedJson empty = OrderedJson::array();
  const OrderedJson* const member = member_of(json, path);
  return member != nullptr && member->is_array() ? *member : empty;
}

}  // namespace headroom
