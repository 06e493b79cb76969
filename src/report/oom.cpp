#include "headroom/report/oom.hpp"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "report/json.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

std::string_view what_ran_out(OutOf source) {
  switch (source) {
    case OutOf::torch: return "PyTorch ran out of GPU memory";
    case OutOf::driver: return "The CUDA driver ran out of GPU memory, outside PyTorch's allocator";
    case OutOf::nccl: return "NCCL ran out of GPU memory, outside PyTorch's allocator";
    case OutOf::cublas: return "cuBLAS ran out of GPU memory, outside PyTorch's allocator";
    case OutOf::xla: return "XLA ran out of device memory";
    case OutOf::host: return "The host ran out of memory";
  }
  return "";
}

std::string cause_text(const OomReply& reply) {
  const OomMessage& message = reply.message;
  const Bytes none(0);
  switch (reply.cause) {
    case OomCause::fragmentation:
      return fmt::format(
          "Fragmentation: {} would fit.\nFree on the GPU are {}, and {} in pieces that PyTorch holds.",
          human(message.asked.value_or(none)), human(message.free.value_or(none)),
          human(message.unused.value_or(none)));
    case OomCause::limit:
      return fmt::format("The process reached its own limit of {}.", human(message.limit.value_or(none)));
    case OomCause::other_processes:
      return fmt::format("Other processes hold {} of the GPU: without them it would fit.",
                         human(reply.others.value_or(none)));
    case OomCause::excess:
      return reply.missing ? fmt::format(
                                 "True excess: this tensor alone needs {} more than there is.\nLater ones "
                                 "may need more.",
                                 human(*reply.missing))
                           : "True excess: the run needs more memory than there is.";
    case OomCause::outside: return "Libraries beside PyTorch's allocator found no memory left.";
    case OomCause::host: return "The kernel ended a process of the job.";
  }
  return "";
}

using NamedBytes = std::pair<std::string_view, std::optional<Bytes>>;
std::array<NamedBytes, 9> parts_of(const OomReply& reply) {
  const OomMessage& message = reply.message;
  return {{{"asked", message.asked},
           {"capacity", message.capacity},
           {"free", message.free},
           {"allocated", message.allocated},
           {"private_pools", message.pools},
           {"reserved_unallocated", message.unused},
           {"non_torch", reply.non_torch},
           {"other_processes", reply.others},
           {"limit", message.limit}}};
}

std::string to_json_text(const OomReply& reply) {
  OrderedJson json{{"format", 2},
                   {"source", name_of(reply.message.source)},
                   {"line", reply.message.line},
                   {"messages", reply.message.messages},
                   {"cause", name_of(reply.cause)}};
  if (reply.message.gpu) json["gpu"] = *reply.message.gpu;
  for (const auto& [name, bytes] : parts_of(reply)) {
    if (bytes) json[std::string(name) + "_bytes"] = bytes->count();
  }
  if (reply.missing) json["missing_bytes"] = reply.missing->count();
  json["remedies"] = reply.remedies;
  return to_text(json);
}

}  // namespace

std::string render(const OomReply& reply, const Style& style) {
  if (style.format == Format::json) return to_json_text(reply);
  const OomMessage& message = reply.message;
  Table table{.columns = {{"memory", Align::left}, {"GiB"}, {"of capacity"}}};
  for (const auto& [name, bytes] : parts_of(reply)) {
    if (!bytes) continue;
    std::string words(name == "non_torch" ? "outside PyTorch" : name);
    for (char& letter : words) letter = letter == '_' ? ' ' : letter;
    table.rows.push_back({std::move(words), in_gib(*bytes),
                          message.capacity ? percent(*bytes / *message.capacity) : std::string()});
  }
  if (style.format == Format::csv) return to_csv(table);
  std::string text = fmt::format("{}{} (line {}{}).\n{}\n", what_ran_out(message.source),
                                 message.gpu ? fmt::format(" on GPU {}", *message.gpu) : "", message.line,
                                 message.messages > 1 ? fmt::format(", first of {}", message.messages) : "",
                                 cause_text(reply));
  if (!table.rows.empty()) text += "\n" + render_table(table, style);
  text += "\nWhat mends it:\n";
  for (const std::string& remedy : reply.remedies) text += "- " + remedy + "\n";
  return style.format == Format::markdown ? text : in_lines(text, style.columns);
}

}  // namespace headroom
