#include "headroom/report/page.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/expects.hpp"
#include "report/page_files.hpp"
#include "report/reply.hpp"
#include "report/svg.hpp"

namespace headroom {
namespace {

using Path = std::vector<const char*>;

// Leaves only the given members of an object.
void keep(OrderedJson& object, std::initializer_list<std::string_view> members) {
  if (!object.is_object()) return;
  OrderedJson kept = OrderedJson::object();
  for (auto& [key, value] : object.items())
    if (contains(members, key)) kept[key] = std::move(value);
  object = std::move(kept);
}

OrderedJson* find(OrderedJson& from, const Path& path) {
  OrderedJson* place = &from;
  for (const char* key : path) {
    if (!place->is_object() || !place->contains(key)) return nullptr;
    place = &(*place)[key];
  }
  return place;
}

void erase(OrderedJson& from, const Path& path, const char* member) {
  if (OrderedJson* const place = find(from, path); place != nullptr && place->is_object())
    place->erase(member);
}

// Parts that a rank does not have are zero in a reply, and absent from a page.
void erase_zeros(OrderedJson& object) {
  if (!object.is_object()) return;
  OrderedJson kept = OrderedJson::object();
  for (auto& [key, value] : object.items())
    if (!value.is_number() || value != 0 || key == "pipeline_rank") kept[key] = std::move(value);
  object = std::move(kept);
}

void make_small(OrderedJson& account) {
  if (OrderedJson* const ranks = find(account, {"memory", "ranks"}); ranks != nullptr && ranks->is_array()) {
    for (OrderedJson& rank : *ranks) {
      erase_zeros(rank);
      for (const char* unseen : {"in_flight", "activation_bytes", "peak"}) erase(rank, {}, unseen);
      if (OrderedJson* const parts = find(rank, {"activations"})) erase_zeros(*parts);
    }
  }
  for (const char* layer : {"layer", "layer_kinds", "embedding", "head"}) erase(account, {"time"}, layer);
}

// What a page shows of a plan that is not the first.
void make_row(OrderedJson& plan) {
  make_small(plan);
  keep(plan,
       {"strategy", "workload", "layout", "memory", "time", "throughput", "budget", "command", "system"});
  erase(plan, {"memory", "allocated", "interval"}, "source");
  erase(plan, {"time", "interval"}, "source");
}

// Steps that make a plan's page smaller, each after the one before; the last plans first.
void shorten(OrderedJson& plan, int step) {
  if (!plan.is_object()) return;
  if (step == 1) erase(plan, {"memory"}, "ranks");
  if (step == 2) {
    for (const char* member : {"workload", "layout", "throughput"}) plan.erase(member);
    if (OrderedJson* const strategy = find(plan, {"strategy"})) {
      keep(*strategy,
           {"devices", "tensor_parallel", "pipeline_parallel", "virtual_pipeline", "context_parallel",
            "data_parallel", "expert_parallel", "micro_batch", "data_sharding"});
    }
    if (OrderedJson* const memory = find(plan, {"memory"}))
      keep(*memory, {"capacity_bytes", "peak_bytes", "verdict"});
    if (OrderedJson* const time = find(plan, {"time"})) keep(*time, {"iteration_seconds"});
  }
}

std::size_t size_of(const OrderedJson& json) { return json.dump().size(); }

// Drops the last entries of a list until the page is small enough, and notes how many there were.
void drop_last(OrderedJson& reply, const char* list) {
  if (!reply.contains(list) || !reply[list].is_array()) return;
  OrderedJson& entries = reply[list];
  const std::size_t all = entries.size();
  std::size_t size = size_of(reply);
  while (size > most_page_json && entries.size() > 1) {
    size -= size_of(entries.back()) + 1;
    entries.erase(entries.size() - 1);
  }
  if (entries.size() < all) reply["left_off"][list] = all;
}

void fit(OrderedJson& reply) {
  if (reply.contains("plans") && reply["plans"].is_array()) {
    OrderedJson& plans = reply["plans"];
    std::size_t size = size_of(reply);
    for (int step = 1; step <= 2; ++step) {
      for (std::size_t i = plans.size(); size > most_page_json && i-- > 1;) {
        const std::size_t before = size_of(plans[i]);
        shorten(plans[i], step);
        size -= before - size_of(plans[i]);
      }
    }
  }
  for (const char* list : {"pareto", "plans", "rows", "points", "layer_front"}) drop_last(reply, list);
}

OrderedJson for_page(OrderedJson reply, ReplyKind kind) {
  reply["kind"] = name_of(kind);
  keep(reply["system"], {"name", "source", "device", "memory", "devices_per_node"});
  keep(reply["software"], {"name", "source"});
  keep(reply["model"], {"name", "source", "hidden", "layers", "heads", "sequence"});
  make_small(reply);
  if (reply.contains("plans") && reply["plans"].is_array()) {
    for (std::size_t i = 0; i < reply["plans"].size(); ++i) {
      if (i == 0) {
        make_small(reply["plans"][i]);
      } else {
        make_row(reply["plans"][i]);
      }
    }
  }
  if (OrderedJson* const trials = find(reply, {"choice", "trials"});
      trials != nullptr && trials->is_array()) {
    for (OrderedJson& trial : *trials) erase(trial, {}, "launch");
  }
  if (reply.contains("pareto") && reply["pareto"].is_array()) {
    for (OrderedJson& point : reply["pareto"])
      keep(point, {"verdict", "peak_bytes", "iteration_seconds", "mfu", "command", "system"});
  }
  fit(reply);
  return reply;
}

// A script of JSON ends at the first "</script", and no "<!--" may open a comment in it.
std::string in_script(const OrderedJson& json) {
  std::string text;
  for (const char letter : json.dump()) {
    if (letter == '<') {
      text += "\\u003c";
    } else {
      text += letter;
    }
  }
  return text;
}

// Returns a template with its {{marks}} filled in, each once: what fills one is not looked at again.
std::string filled(std::string_view html, const std::map<std::string_view, std::string>& texts) {
  std::string result;
  while (true) {
    const std::size_t open = html.find("{{");
    result += html.substr(0, open);
    if (open == std::string_view::npos) return result;
    const std::size_t close = html.find("}}", open);
    EXPECTS(close != std::string_view::npos);
    result += texts.at(html.substr(open + 2, close - open - 2));
    html.remove_prefix(close + 2);
  }
}

// Returns whether a what-if page finds a model: a preset, or a name of the hub.
bool is_known_there(std::string_view model, const OrderedJson& reply) {
  constexpr std::array file_endings{".json", ".sh", ".py", ".toml", ".yaml", ".yml"};
  const bool is_file = std::any_of(file_endings.begin(), file_endings.end(),
                                   [&](std::string_view ending) { return model.ends_with(ending); });
  return model == text_in(reply, {"model", "name"}) ||
         (!is_file && model.find('/') != std::string_view::npos);
}

// Returns the address at which a what-if page opens the plan of a reply.
std::string what_if_address(std::string_view page, const OrderedJson& reply) {
  constexpr std::string_view estimate = "headroom estimate ";
  const OrderedJson& plans = list_in(reply, {"plans"});
  if (reply.contains("plans") && plans.empty()) return "";  // nothing was found that could be opened
  const std::string command = text_in(plans.empty() ? reply : plans.front(), {"command"});
  if (!command.starts_with(estimate)) throw InputError("--what-if", "takes a reply of estimate or plan");
  const std::string model =
      command.substr(estimate.size(), command.find(' ', estimate.size()) - estimate.size());
  if (!is_known_there(model, reply))
    throw InputError("--what-if",
                     "takes the program's own models, but this one is read from '" + model + "'");
  if (command.find(".json") != std::string::npos)
    throw InputError("--what-if",
                     "takes the program's own systems and stacks, but this command names a file");
  std::string address = fmt::format("{}#command=", page);
  for (const char letter : command) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte) != 0 || contains(std::string_view("-._~"), letter)) {
      address += letter;
    } else {
      address += fmt::format("%{:02X}", byte);
    }
  }
  return address;
}

}  // namespace

std::string page(std::string_view reply, const std::string& name, std::string_view what_if) {
  ReadReply read = read_reply(reply, name);
  const std::string address = what_if.empty() ? "" : what_if_address(what_if, read.json);
  const OrderedJson json = for_page(std::move(read.json), read.kind);
  std::string_view html;
  std::string styles;
  std::string scripts;
  for (const EmbeddedFile& file : page_files()) {
    if (file.path.ends_with(".html")) html = file.text;
    if (file.path.ends_with(".css")) styles += file.text;
    if (file.path.ends_with(".js")) scripts += file.text;
  }
  return filled(html, {{"title", svg::escaped(read.title)},
                       {"what_if", svg::escaped(address)},
                       {"styles", styles},
                       {"reply", in_script(json)},
                       {"scripts", scripts}});
}

}  // namespace headroom
