#include "headroom/io/schema.hpp"

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "io/command_files.hpp"

namespace headroom::cli {
namespace {

struct SchemaFlags {
  FlagText name;
  std::string folder;
  OutputFlags output;
};

void write_all(const std::string& folder) {
  if (kind_of_file(folder) != FileKind::folder) throw InputError(folder, "is no folder");
  const auto file_of = [&](std::string_view name) {
    return folder + "/" + std::string(name) + ".schema.json";
  };
  for (const std::string_view name : schema_names()) will_write("--all", file_of(name));
  for (const std::string_view name : schema_names()) write({.file = file_of(name)}, schema(name));
}

void print(const SchemaFlags& flags) {
  if (!flags.folder.empty()) {
    if (flags.name || !flags.output.file.empty())
      throw InputError("--all", "writes every schema to its folder: leave out the name and --output");
    return write_all(flags.folder);
  }
  if (flags.name) return write(flags.output, schema(*flags.name));
  std::string names;
  for (const std::string_view name : schema_names()) names += std::string(name) + '\n';
  write(flags.output, names);
}

}  // namespace

void add_schema(Command program, ExitCode& exit_code) {
  Command command = program.add_command("schema", "Prints the JSON schema of a file or of a reply");
  const auto flags = std::make_shared<SchemaFlags>();
  command.option("name", flags->name, "SCHEMA", "Schema to print (default: list their names)");
  command.option("--all", flags->folder, "FOLDER", "Write every schema to FOLDER as NAME.schema.json");
  command.in(topic::output)
      .output("-o,--output", flags->output.file, "Write to FILE instead of standard output");
  command.examples({"headroom schema model -o model.schema.json", "headroom schema estimate"});
  command.on_run([flags, &exit_code] {
    print(*flags);
    exit_code = ExitCode::done;
  });
}

}  // namespace headroom::cli
