#include "cli/shards.hpp"

#include "cli/version.hpp"
#include "headroom/interop/hugging_face.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"

namespace headroom::cli {
namespace {

// Of what cannot be read, the reason: that is the same on every machine that cannot read it.
template <class Read>
std::string text_or_problem(Read read) {
  try {
    return read();
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace

void add_shard_flag(Command command, FlagText& shard) {
  command.in(topic::work)
      .option("--shard", shard, "I/N", "Do only part I of N (from 1) and write a file for 'headroom merge'");
}

std::optional<Shard> read_shard(const Command& command, const FlagText& text,
                                std::vector<Problem>& problems) {
  if (!text) return std::nullopt;
  if (command.is_given("--format")) {
    problems.push_back({"--format", "does not go with --shard: give it to 'headroom merge'"});
  }
  const std::size_t slash = text->find('/');
  if (slash == std::string::npos) {
    problems.push_back({"--shard", "must be I/N, such as 1/8, not '" + text->substr(0, 40) + "'"});
    return std::nullopt;
  }
  const std::size_t known = problems.size();
  Shard shard;
  read_count("--shard", text->substr(slash + 1), shard.count, problems);
  read_count("--shard", text->substr(0, slash), shard.index, problems);
  if (problems.size() == known && (shard.index > shard.count || shard.count > most_shards)) {
    problems.push_back({"--shard", "must be a part of at most " + std::to_string(most_shards) +
                                       ", from 1/N to N/N, not '" + *text + "'"});
  }
  return shard;
}

PartHead part_head(std::string command, const Shard& shard, std::vector<std::string> arguments,
                   const Inputs& inputs) {
  std::vector<std::string> texts{version(), command};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  for (const std::string& name : inputs.models) {
    texts.push_back(text_or_problem([&] { return write_model(read_any_model(name)); }));
  }
  for (const std::string& name : inputs.systems) {
    texts.push_back(text_or_problem([&] { return write_system(read_system(name)); }));
  }
  for (const std::string& name : inputs.software) {
    if (!name.empty()) {
      texts.push_back(text_or_problem([&] { return write_software(read_software(name)); }));
      continue;
    }
    for (const std::string& system : inputs.systems) {
      texts.push_back(text_or_problem(
          [&] { return write_software(read_software(read_system(system).default_software)); }));
    }
  }
  return {.program = version(),
          .command = std::move(command),
          .shard = shard,
          .digest = digest_of(texts),
          .arguments = std::move(arguments)};
}

void check_inputs(const std::vector<PartReader>& parts, const Inputs& inputs) {
  const PartHead& head = parts.front().head();
  if (part_head(head.command, head.shard, head.arguments, inputs).digest != head.digest) {
    throw InputError(parts.front().path() + ": /digest",
                     "must be that of the inputs found now: a model, system or software file is not here or "
                     "was changed since");
  }
}

}  // namespace headroom::cli
