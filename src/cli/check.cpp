#include "headroom/io/check.hpp"

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/flags.hpp"
#include "cli/notes.hpp"
#include "io/text.hpp"

namespace headroom::cli {
namespace {

void check(const std::vector<std::string>& files) {
  std::vector<Problem> problems;
  for (const std::string& file : files) {
    collect(problems, [&] {
      const std::string_view kind = check_file(file);
      fmt::print("{}: a valid {} file\n", printable(file, std::string::npos), kind);
      if (kind == "system") note_reading(kind, file);
    });
  }
  if (!problems.empty()) throw InputError(problems);
}

}  // namespace

void add_check(Command program, ExitCode& exit_code) {
  Command command = program.add_command("check", "Checks files of any kind: models, systems, runs, ...");
  const auto files = std::make_shared<std::vector<std::string>>();
  command.option("files", *files, "FILE", "Files of any kind that Headroom reads").required();
  command.footer("Example:\n  headroom check my-model.json my-cluster.json");
  command.on_run([files, &exit_code] {
    check(*files);
    exit_code = ExitCode::done;
  });
}

}  // namespace headroom::cli
