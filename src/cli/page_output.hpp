// --html and --plot: a command's reply as a page and as a picture, beside what it prints. --views: what only the page shows, in JSON.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/output.hpp"
#include "headroom/answer/estimate.hpp"

namespace headroom::cli {

struct PageOutput {
  std::string file;
  std::string plot;
  FlagText what_if;
  std::string views;  // empty, "true" or "quick"
};

void add_page_output(Command command, PageOutput& options);
// Also adds --views and --what-if, of commands whose pages show a plan in full.
void add_views_output(Command command, PageOutput& options);

// Notes a page of one of several shards, which have no whole reply.
void refuse_page_of_shard(const PageOutput& options, bool of_shard, std::vector<Problem>& problems);

// Adds --what-if, of commands that write a page of a plan.
void add_what_if(Command command, FlagText& address);

// Returns the address of the what-if page, or empty. Notes one that is no address of the web.
std::string read_what_if(const FlagText& address, std::vector<Problem>& problems);

// Notes a --what-if of a command that names a file: model, system or stack.
void refuse_files(const FlagText& address, std::initializer_list<std::string_view> names,
                  std::vector<Problem>& problems);

// Returns the views that the reply needs. Notes --views without --format json, and a --what-if that cannot be linked.
WhichViews views_needed(const PageOutput& options, const Style& style, std::vector<Problem>& problems);

// Drops from a reply what only its page shows: views, the tensors unless `peak`, the launch unless `launch`.
void keep_asked(const PageOutput& options, bool peak, bool launch, EstimateReply& reply);

// Returns whether a page or a picture is asked for.
bool is_drawn(const PageOutput& options);

// Writes the page and the picture, if they are asked for, of what `render` returns in JSON.
void write_page(const PageOutput& options, const std::function<std::string(const Style& json)>& render);

}  // namespace headroom::cli
