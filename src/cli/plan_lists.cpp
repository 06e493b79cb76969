#include "cli/plan_lists.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/answer/values.hpp"

namespace headroom::cli {
namespace {

// At a hundredth of a second each, a range of so many is searched in minutes.
constexpr std::size_t most_batches = 10'000;

// Whether commas part groups of three digits, as in "1,024" or "64,128".
bool in_thousands(std::string_view text) {
  const std::vector<std::string_view> groups = parts_of(text);
  const bool digits = text.find_first_not_of("0123456789,") == std::string_view::npos;
  return digits && groups.size() > 1 && !groups.front().empty() && groups.front().size() <= 3 &&
         std::all_of(groups.begin() + 1, groups.end(), [](std::string_view it) { return it.size() == 3; });
}

// A list or a range whose tokens are the sequences that they are: "256;512:1024" of "2M tokens;4M tokens:8M tokens" at 8192.
std::string in_sequences(const std::string& text, std::int64_t sequence, std::vector<Problem>& problems) {
  std::string result;
  const auto add = [&](const std::string& piece) {
    const bool factor = piece.starts_with('x') && piece.size() > 1;
    if (factor || piece.find_first_not_of("0123456789,. ") == std::string::npos) return result += piece;
    std::int64_t sequences = 1;
    const std::string rule = read_global_batch(piece, sequence, sequences);
    if (!rule.empty()) problems.push_back({"--global-batch", rule});
    return result += std::to_string(sequences);
  };
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(":;", start), text.size());
    const std::string piece = text.substr(start, end - start);
    // Commas part amounts of tokens, but inside of one ("4,000,000 tokens").
    const std::vector<std::string> amounts = split(piece, ',');
    const bool one = amounts.size() == 1 || !std::all_of(amounts.begin(), amounts.end(), is_of_tokens);
    for (std::size_t i = 0; i < (one ? 1 : amounts.size()); ++i) {
      if (i > 0) result += ';';
      add(one ? piece : amounts[i]);
    }
    if (end < text.size()) result += text[end];
    start = end + 1;
  }
  return result;
}

// "960:1536" is every number between, as "960:1536:1". Semicolons part numbers, since commas may stand in one ("1,024"); "64,128" could
// mean either, and "512,1024" is no number.
std::vector<std::int64_t> read_batches(const FlagText& given, std::int64_t sequence,
                                       std::vector<Problem>& problems) {
  std::vector<std::int64_t> batches;
  if (!given) return batches;
  const std::size_t before = problems.size();
  const FlagText text = in_sequences(*given, sequence, problems);
  if (problems.size() > before) return batches;
  std::string several = *text;
  if (text->find_first_of(":;") == std::string::npos) {
    std::replace(several.begin(), several.end(), ',', ';');
    const bool one = in_thousands(*text);
    if (one && text->find(",0") == std::string::npos) {
      std::string number = *text;
      std::erase(number, ',');
      problems.push_back({"--global-batch", "may be one number or several: write " + number + " or '" +
                                                several + "', not '" + *text + "'"});
      return batches;
    }
    if (one || text->find(',') == std::string::npos) {
      read_count("--global-batch", text, batches.emplace_back(1), problems);
      return batches;
    }
  }
  collect(problems, [&] {
    const bool range = std::count(several.begin(), several.end(), ':') == 1;
    for (const std::string& value : values_of("--global-batch", range ? several + ":1" : several)) {
      std::int64_t batch = 1;
      read_count("--global-batch", value, batch, problems);
      if (std::find(batches.begin(), batches.end(), batch) == batches.end()) batches.push_back(batch);
      if (batches.size() > most_batches) {
        throw InputError("--global-batch", "must be at most " + std::to_string(most_batches) +
                                               " batches: give a step, as in 960:1536:8");
      }
    }
  });
  return batches;
}

// All from a part below a batch to that part above it.
std::vector<std::int64_t> batches_around(std::int64_t batch, const std::string& text,
                                         std::vector<Problem>& problems) {
  constexpr Unit percent[] = {{"%", 1}};
  double range = 0;
  const std::size_t before = problems.size();
  read_with_unit("--batch-range", text, percent, "25%", range, problems);
  std::vector<std::int64_t> batches;
  if (problems.size() > before) return batches;
  const double width = range / 100 * static_cast<double>(batch);
  if (range >= 100 || 2 * width > static_cast<double>(most_batches)) {
    problems.push_back({"--batch-range",
                        "must be below 100%, and make at most " + std::to_string(most_batches) + " batches"});
    return batches;
  }
  const auto least = static_cast<std::int64_t>(std::ceil(static_cast<double>(batch) - width));
  const auto most = static_cast<std::int64_t>(std::floor(static_cast<double>(batch) + width));
  for (std::int64_t b = std::max<std::int64_t>(least, 1); b <= most; ++b) batches.push_back(b);
  return batches;
}

// "h100=2.50,b200=4.10": by a system's name, or a part of it that no other has.
void read_prices(const std::string& text, std::vector<Offer>& offers, std::vector<Problem>& problems) {
  constexpr Unit plain[] = {{"", 1}};
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0) {
      problems.push_back(
          {"--price", "must be SYSTEM=PRICE,..., such as h100=2.50,b200=4.10, not '" + part + "'"});
      continue;
    }
    const std::string name = part.substr(0, equals);
    std::vector<Offer*> named;
    for (Offer& offer : offers) {
      if (offer.system.name == name) {
        named = {&offer};
        break;
      }
      if (offer.system.name.find(name) != std::string::npos) named.push_back(&offer);
    }
    if (named.size() != 1) {
      problems.push_back({"--price", "'" + name +
                                         "' must be the name of one of the systems, or a part of it (" +
                                         (named.empty() ? "it is of none)" : "it is of several)")});
      continue;
    }
    double price = 0;
    const std::size_t before = problems.size();
    read_with_unit("--price", part.substr(equals + 1), plain, "h100=2.50", price, problems);
    if (problems.size() == before) named.front()->price_per_device_hour = price;
  }
  for (const Offer& offer : offers) {
    if (!offer.price_per_device_hour)
      problems.push_back({"--price", "names no price of " + offer.system.name});
  }
}

void read_offers(const Lists& lists, const ListFlags& flags, const RequestFlags& asked,
                 const SystemFlags& system, const SpaceFlags& space, PlanQuestion& question,
                 std::vector<Problem>& problems) {
  if (lists.systems.size() <= 1 && !flags.prices) return;
  const std::size_t before = problems.size();
  for (const std::string& name : lists.systems) {
    SystemFlags one = system;
    one.system = name;
    Request request = question.base;
    std::vector<Problem> of_this;
    read_system_flags(one, request, of_this);
    use_stack_optimizer(asked, request);
    const Space of_system = read_space(space, request.software, of_this);
    // What is wrong with all is said once.
    for (Problem& problem : of_this) {
      if (std::find(problems.begin(), problems.end(), problem) == problems.end())
        problems.push_back(std::move(problem));
    }
    question.offers.push_back({.system = request.system,
                               .software = request.software,
                               .layouts = of_system.layouts,
                               .strategy = request.strategy,
                               .price_per_device_hour = question.training.price_per_device_hour});
  }
  if (problems.size() > before || !flags.prices) return;
  if (question.training.price_per_device_hour) {
    problems.push_back({"--price", "says what --price-per-gpu-hour says: leave out one of the two"});
  } else if (question.training.tokens <= 0) {
    problems.push_back({"--price", "needs --tokens, the length of the training run"});
  } else {
    read_prices(*flags.prices, question.offers, problems);
  }
}

}  // namespace

void add_list_flags(Command command, ListFlags& flags) {
  command.in(topic::search_space)
      .option("--batch-range", flags.batch_range, "PERCENT",
              "Also try global batches up to this much smaller or larger: 25%");
  command.in(topic::training_run)
      .option("--price", flags.prices, "SYSTEM=PRICE,...",
              "Price per GPU-hour of each system: h100=2.50,b200=4.10");
}

Lists take_lists(RequestFlags& request, SystemFlags& system, SpaceFlags& space) {
  Lists lists{.systems = split(system.system, ','),
              .devices = std::exchange(space.devices, std::nullopt),
              .global_batches = std::exchange(request.text("global_batch"), std::nullopt)};
  system.system = lists.systems.front();
  return lists;
}

void read_devices(const Lists& lists, PlanQuestion& question, std::vector<Problem>& problems) {
  for (const std::string& part : split_list(lists.devices)) {
    std::int64_t count = 1;
    if (part.size() > 1 && part.starts_with('0')) {
      problems.push_back({"--devices",
                          "must be numbers that do not begin with 0 and have no comma inside, such as "
                          "1024 or 512,1024" +
                              not_this(*lists.devices)});
      break;
    }
    read_count("--devices", part, count, problems);
    std::vector<std::int64_t>& counts = question.device_counts;
    if (std::find(counts.begin(), counts.end(), count) == counts.end()) counts.push_back(count);
  }
  if (!question.device_counts.empty()) question.space.devices = question.device_counts.front();
}

void read_lists(const Lists& lists, const ListFlags& flags, const RequestFlags& asked,
                const SystemFlags& system, const SpaceFlags& space, PlanQuestion& question,
                std::vector<Problem>& problems) {
  question.global_batches = read_batches(lists.global_batches, question.base.workload.sequence, problems);
  std::int64_t& batch = question.base.workload.global_batch;
  if (!question.global_batches.empty()) batch = question.global_batches.front();
  if (flags.batch_range) {
    if (question.global_batches.size() > 1) {
      problems.push_back({"--batch-range", "needs one --global-batch, not several"});
    } else {
      question.around_batch = batch;
      question.global_batches = batches_around(batch, *flags.batch_range, problems);
    }
  }
  read_offers(lists, flags, asked, system, space, question, problems);
}

}  // namespace headroom::cli
