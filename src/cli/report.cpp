#include "cli/command.hpp"
#include "cli/output.hpp"
#include "headroom/report/page.hpp"
#include "headroom/report/picture.hpp"
#include "io/text.hpp"

namespace headroom::cli {
namespace {

struct ReportFlags {
  std::string reply;
  OutputFlags output;
};

}  // namespace

void add_report(Command program, ExitCode& exit_code) {
  Command command = program.add_command("report", "Draws a reply in JSON as a page, or as a picture (.svg)");
  const auto flags = std::make_shared<ReportFlags>();
  command.option("reply", flags->reply, "FILE", "Reply of plan, estimate, compare, frontier or sweep in JSON")
      .required();
  command.in(topic::output)
      .output("-o,--output", flags->output.file, "Write to FILE instead of standard output");
  command.examples({"headroom estimate llama-3-70b -t 8 -p 4 --sp --views --format json -o reply.json",
                    "headroom report reply.json -o reply.html", "headroom report reply.json -o reply.svg"});
  command.footer("The commands' --html FILE and --plot FILE.svg write the same at once.");
  command.on_run([flags, &exit_code] {
    const std::string reply = read_file(flags->reply);
    const bool drawn = flags->output.file.ends_with(".svg");
    write(flags->output, drawn ? picture(reply, flags->reply) : page(reply, flags->reply));
    exit_code = ExitCode::done;
  });
}

}  // namespace headroom::cli
