#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/page_output.hpp"
#include "cli/picture_file.hpp"
#include "headroom/report/page.hpp"
#include "headroom/report/picture.hpp"
#include "io/text.hpp"

namespace headroom::cli {
namespace {

struct ReportFlags {
  std::string reply;
  FlagText what_if;
  OutputFlags output;
};

}  // namespace

void add_report(Command program, ExitCode& exit_code) {
  Command command =
      program.add_command("report", "Draws a reply in JSON as a page, or as a picture (.svg, .png)");
  const auto flags = std::make_shared<ReportFlags>();
  command.option("reply", flags->reply, "FILE", "Reply of plan, estimate, compare, frontier or sweep in JSON")
      .required();
  command.in(topic::output)
      .output("-o,--output", flags->output.file, "Write to FILE instead of standard output");
  add_what_if(command, flags->what_if);
  command.examples({"headroom estimate llama-3-70b -t 8 -p 4 --sp --views --format json -o reply.json",
                    "headroom report reply.json -o reply.html", "headroom report reply.json -o reply.svg"});
  command.footer("The commands' --html FILE and --plot FILE write the same at once.");
  command.on_run([flags, &exit_code] {
    const std::string& file = flags->output.file;
    const bool drawn = is_picture(file);
    std::vector<Problem> problems;
    const std::string what_if = read_what_if(flags->what_if, problems);
    if (drawn && flags->what_if)
      problems.push_back({"--what-if", "does not go with a picture, which has no links"});
    if (std::string obstacle = obstacle_to_picture(file); !obstacle.empty())
      problems.push_back({"--output", std::move(obstacle)});
    if (!problems.empty()) throw InputError(std::move(problems));
    const std::string reply = read_file(flags->reply);
    if (drawn) {
      write_picture(file, picture(reply, flags->reply));
    } else {
      write(flags->output, page(reply, flags->reply, what_if));
    }
    exit_code = ExitCode::done;
  });
}

}  // namespace headroom::cli
