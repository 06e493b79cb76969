#include "cli/page_output.hpp"

#include <algorithm>

#include "cli/picture_file.hpp"
#include "headroom/report/page.hpp"
#include "headroom/report/picture.hpp"
#include "io/command_files.hpp"

namespace headroom::cli {

void add_page_output(Command command, PageOutput& options) {
  const Command output = command.in(topic::output);
  output.output("--html", options.file, "Also write the reply as a page to FILE, with charts");
  output.picture("--plot", options.plot, "Also draw the reply as one picture");
}

void add_what_if(Command command, FlagText& address) {
  command.in(topic::output)
      .option("--what-if", address, "URL", "Link the page to the what-if page at URL, which opens the plan");
}

std::string read_what_if(const FlagText& address, std::vector<Problem>& problems) {
  if (!address) return "";
  const bool is_web = address->starts_with("https://") || address->starts_with("http://");
  const bool has_host = is_web && address->find("//") + 2 < address->size();
  const bool is_plain = std::all_of(address->begin(), address->end(), [](char letter) {
    return letter > ' ' && letter < '\x7f' && letter != '#';
  });
  if (!has_host || !is_plain)
    problems.push_back({"--what-if", "must be an address like https://host/what-if/, without blanks and #"});
  return *address;
}

void refuse_files(const FlagText& address, std::initializer_list<std::string_view> names,
                  std::vector<Problem>& problems) {
  for (const std::string_view name : names) {
    if (address && is_regular_file(std::string(name)))
      problems.push_back(
          {"--what-if", "a what-if page has no files of yours, as '" + std::string(name) + "'"});
  }
}

void add_views_output(Command command, PageOutput& options) {
  add_page_output(command, options);
  add_what_if(command, options.what_if);
  command.in(topic::output)
      .flag("--views", options.views, "", {"quick"},
            "With --format json: add what a page draws, for headroom report (schedule, layer, ladder, "
            "frontier); "
            "=quick: the first two");
}

WhichViews views_needed(const PageOutput& options, const Style& style, std::vector<Problem>& problems) {
  if (!options.views.empty() && options.views != "true" && options.views != "quick")
    problems.push_back({"--views", "must be quick, or have no value, but is '" + options.views + "'"});
  if (!options.views.empty() && style.format != Format::json)
    problems.push_back({"--views", "needs --format json: --html FILE draws the views"});
  read_what_if(options.what_if, problems);
  if (options.what_if && options.file.empty())
    problems.push_back({"--what-if", "needs a page to link, --html FILE"});
  if (!options.file.empty()) return WhichViews::all;
  if (options.views.empty()) return WhichViews::none;
  return options.views == "quick" ? WhichViews::quick : WhichViews::all;
}

void refuse_page_of_shard(const PageOutput& options, bool of_shard, std::vector<Problem>& problems) {
  for (const auto& [flag, file] : {std::pair{"--html", options.file}, std::pair{"--plot", options.plot}}) {
    if (of_shard && !file.empty())
      problems.push_back({flag, "does not go with --shard: draw what headroom merge --format json prints"});
  }
}

void keep_asked(const PageOutput& options, bool peak, bool launch, EstimateReply& reply) {
  if (options.views.empty()) reply.views.reset();
  if (options.views.empty() && !peak) reply.peak_tensors.reset();
  if (!launch) reply.launch.reset();
}

bool is_drawn(const PageOutput& options) { return !options.file.empty() || !options.plot.empty(); }

void write_page(const PageOutput& options, const std::function<std::string(const Style& json)>& render) {
  if (!is_drawn(options)) return;
  const std::string json = render(Format::json);
  if (!options.file.empty())
    write({.file = options.file}, page(json, options.file, options.what_if.value_or("")));
  if (!options.plot.empty()) write_picture(options.plot, picture(json, options.plot));
}

}  // namespace headroom::cli
