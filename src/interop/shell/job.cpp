#include <algorithm>
#include <array>
#include <charconv>

#include "interop/shell/interpreter.hpp"

namespace headroom::shell {
namespace {

std::optional<std::int64_t> count_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr std::int64_t most = 1 << 24;
  if (error != std::errc() || value < 1 || value > most) return std::nullopt;
  const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return rest.empty() || rest.starts_with("-") ? std::optional(value)
                                               : std::nullopt;  // 4-8: at least 4 nodes
}

// "gpu:h100:8", "h100:8" or "8".
void read_gpus(std::string_view text, std::optional<std::int64_t>& count, std::string& gpu) {
  if (text.starts_with("gpu:")) text.remove_prefix(4);
  if (const std::size_t comma = text.find(','); comma != std::string_view::npos) text = text.substr(0, comma);
  const std::size_t colon = text.rfind(':');
  const std::string_view number = colon == std::string_view::npos ? text : text.substr(colon + 1);
  if (const auto value = count_of(number)) {
    count = value;
    if (colon != std::string_view::npos) gpu = text.substr(0, colon);
  }
}

void read_option(std::string_view name, std::string_view value, JobSizes& sizes) {
  if (name == "nodes" || name == "N") {
    if (const auto count = count_of(value)) sizes.nodes = count;
  } else if (name == "gpus-per-node" || name == "gpus-per-task") {
    if (name == "gpus-per-node") read_gpus(value, sizes.gpus_per_node, sizes.gpu);
  } else if (name == "gres") {
    if (value.starts_with("gpu")) {
      if (value == "gpu") sizes.gpus_per_node = 1;
      read_gpus(value, sizes.gpus_per_node, sizes.gpu);
    }
  } else if (name == "gpus" || name == "G") {
    read_gpus(value, sizes.gpus, sizes.gpu);
  } else if (name == "ntasks-per-node" || name == "tasks-per-node") {
    if (const auto count = count_of(value)) sizes.tasks_per_node = count;
  } else if (name == "ntasks" || name == "n") {
    if (const auto count = count_of(value)) sizes.tasks = count;
  } else if (name == "constraint" || name == "C") {
    constexpr std::array<std::string_view, 6> gpus{"h100", "a100", "h200", "b200", "mi300x", "v100"};
    for (const std::string_view gpu : gpus) {
      if (value.find(gpu) != std::string_view::npos && sizes.gpu.empty()) sizes.gpu = gpu;
    }
  }
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  constexpr std::string_view blanks = " \t\r";
  for (std::size_t at = line.find_first_not_of(blanks); at < line.size();) {
    const std::size_t end = std::min(line.find_first_of(blanks, at), line.size());
    std::string word(line.substr(at, end - at));
    std::erase_if(word, [](char c) { return c == '"' || c == '\''; });
    words.push_back(std::move(word));
    at = std::min(line.find_first_not_of(blanks, end), line.size());
  }
  return words;
}

// PBS: "select=8:ncpus=64:ngpus=4", "nodes=8:gpus=4".
void read_selection(std::string_view text, JobSizes& sizes) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(":,", at), text.size());
    const std::string_view part = text.substr(at, end - at);
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view name = part.substr(0, equals);
    const auto value = count_of(part.substr(std::min(equals + 1, part.size())));
    if (value && (name == "select" || name == "nodes")) sizes.nodes = value;
    if (value && (name == "ngpus" || name == "gpus")) sizes.gpus_per_node = value;
    at = end + 1;
  }
}

}  // namespace

std::size_t read_job_options(const std::vector<std::string>& words, JobSizes& sizes) {
  constexpr std::string_view alone[] = {"--exclusive",
                                        "--overcommit",
                                        "--label",
                                        "-l",
                                        "--unbuffered",
                                        "-u",
                                        "--wait-all-nodes",
                                        "--requeue",
                                        "-W",
                                        "--no-kill",
                                        "-k",
                                        "--export-all",
                                        "--mpi",
                                        "--overlap",
                                        "-v",
                                        "--container-mount-home",
                                        "--no-container-mount-home",
                                        "--hold",
                                        "--parsable",
                                        "--container-remap-root",
                                        "--kill-on-bad-exit",
                                        "-K",
                                        "--no-requeue",
                                        "--oversubscribe",
                                        "-s",
                                        "-O",
                                        "-E",
                                        "--preserve-env",
                                        "--container-writable",
                                        "--quiet",
                                        "-Q",
                                        "--pty",
                                        "--verbose",
                                        "--disable-status",
                                        "--spread-job",
                                        "--wait",
                                        "-H"};
  std::size_t i = 0;
  while (i < words.size() && words[i].starts_with('-') && words[i].size() > 1) {
    const std::string& word = words[i++];
    if (word.starts_with("--")) {
      const std::size_t equals = std::min(word.find('='), word.size());
      const std::string name = word.substr(2, equals - 2);
      if (equals < word.size()) {
        read_option(name, std::string_view(word).substr(equals + 1), sizes);
      } else if (std::find(std::begin(alone), std::end(alone), word) == std::end(alone) && i < words.size()) {
        read_option(name, words[i++], sizes);
      }
    } else if (std::find(std::begin(alone), std::end(alone), word) != std::end(alone)) {
      continue;
    } else if (word.size() > 2) {
      std::string_view value = std::string_view(word).substr(2);
      if (value.starts_with('=')) value.remove_prefix(1);
      read_option(word.substr(1, 1), value, sizes);
    } else if (i < words.size()) {
      read_option(word.substr(1), words[i++], sizes);
    }
  }
  return i;
}

void read_job_lines(std::string_view text, JobSizes& sizes) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with("#SBATCH") && !line.starts_with("#PBS")) continue;
    const bool slurm = line.starts_with("#SBATCH");
    line.remove_prefix(slurm ? 7 : 4);
    if (const std::size_t comment = line.find(" #"); comment != std::string_view::npos)
      line = line.substr(0, comment);
    const std::vector<std::string> words = words_of(line);
    if (slurm) {
      read_job_options(words, sizes);
    } else if (words.size() > 1 && words[0] == "-l") {
      read_selection(words[1], sizes);
    }
  }
}

std::optional<std::string> Interpreter::variable_of_job(std::string_view name) const {
  const JobSizes& job = followed_.job;
  const auto text = [](std::optional<std::int64_t> count) {
    return count ? std::optional(std::to_string(*count)) : std::nullopt;
  };
  if (name == "SLURM_NNODES" || name == "SLURM_JOB_NUM_NODES") return text(job.nodes);
  if (name == "SLURM_GPUS_ON_NODE" || name == "SLURM_GPUS_PER_NODE") return text(job.gpus_per_node);
  if (name == "SLURM_NTASKS_PER_NODE" || name == "SLURM_TASKS_PER_NODE") return text(job.tasks_per_node);
  if (name == "SLURM_NTASKS" || name == "SLURM_NPROCS") {
    if (job.tasks) return text(job.tasks);
    if (job.nodes && job.tasks_per_node) return std::to_string(*job.nodes * *job.tasks_per_node);
  }
  return std::nullopt;
}

}  // namespace headroom::shell
