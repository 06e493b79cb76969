// A reply in JSON that was written before, as a page or a picture reads it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "headroom/core/names.hpp"
#include "report/json.hpp"

namespace headroom {

enum class ReplyKind : std::uint8_t { plan, estimate, compare, frontier, sweep };

struct ReadReply {
  ReplyKind kind{};
  OrderedJson json;
  std::string title;  // "headroom plan: gpt3-175b on dgx-a100-80g"
};

// Reads the reply of a command. `name`: how errors call it. Throws InputError if the text is not JSON or no such reply.
ReadReply read_reply(std::string_view text, const std::string& name);

// What a reply holds at a path of members, as long as it has the shape that is expected there: a reply may have been
// edited.
using MemberPath = std::initializer_list<const char*>;
const OrderedJson* member_of(const OrderedJson& json, MemberPath path);  // null: absent
std::optional<double> number_of(const OrderedJson& value);               // from 0 to 1e18
std::optional<double> number_in(const OrderedJson& json, MemberPath path);
std::string text_in(const OrderedJson& json, MemberPath path);         // empty: absent
const OrderedJson& list_in(const OrderedJson& json, MemberPath path);  // empty: absent

}  // namespace headroom

template <>
inline constexpr std::array<headroom::Spelling<headroom::ReplyKind>, 5>
    headroom::spellings<headroom::ReplyKind>{{{headroom::ReplyKind::plan, "plan"},
                                              {headroom::ReplyKind::estimate, "estimate"},
                                              {headroom::ReplyKind::compare, "compare"},
                                              {headroom::ReplyKind::frontier, "frontier"},
                                              {headroom::ReplyKind::sweep, "sweep"}}};
