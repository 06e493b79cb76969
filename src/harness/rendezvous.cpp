#include "rendezvous.hpp"

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "headroom/core/error.hpp"

namespace headroom::harness {
namespace {

using Clock = std::chrono::steady_clock;

struct Names {
  const char* launcher;
  const char* rank;
  const char* ranks;
  const char* local_rank;
  const char* local_ranks;  // how many on this node; null: the launcher counts nodes instead
  const char* nodes;
};
constexpr std::array<Names, 3> launchers{
    {{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", nullptr},
     {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr, "SLURM_STEP_NUM_NODES"},
     {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
      "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr}}};

constexpr int most_ranks = 1 << 16;

std::optional<int> integer(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Whole or not at all, for whoever reads it.
void publish(const std::string& file, const std::string& text) {
  const std::string partial = file + ".partial";
  std::ofstream out(partial, std::ios::trunc | std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error(partial + ": cannot be written");
  std::filesystem::rename(partial, file);
}

std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  return text.str();
}

void remove_quietly(const std::string& file) {
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
}

std::string file_of(const Rendezvous& rendezvous, int rank) {
  return rendezvous.file + ".rank" + std::to_string(rank);
}

constexpr std::string_view taken = " taken";

// Rank 0: writes the message for all numbers seen so far whenever one of them changes, until all have taken it.
std::string offer(const Rendezvous& rendezvous, const Launch& launch, const std::string& message) {
  const auto end = Clock::now() + rendezvous.timeout;
  std::map<int, std::string> numbers;
  for (;;) {
    std::vector<int> missing;
    std::map<int, std::string> seen;
    for (int rank = 1; rank < launch.ranks; ++rank) {
      std::string number = contents(file_of(rendezvous, rank));
      const bool done = number.ends_with(taken);
      if (done) number.resize(number.size() - taken.size());
      // A number that was taken before it was offered is of an earlier job.
      if (number.empty() || !done || numbers[rank] != number) missing.push_back(rank);
      if (!number.empty() && !done) seen[rank] = number;
      if (done && numbers[rank] == number) seen[rank] = number;
    }
    if (missing.empty()) break;
    if (seen != numbers) {
      std::string text;
      for (const auto& [rank, number] : seen) text += std::to_string(rank) + ' ' + number + '\n';
      publish(rendezvous.file, text + '\n' + message);
      numbers = seen;
    }
    if (Clock::now() > end) {
      remove_quietly(rendezvous.file);
      std::string ranks;
      for (const int rank : missing) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
      throw std::runtime_error(rendezvous.file + ": of " + std::to_string(launch.ranks) +
                               " ranks these did not come in time: " + ranks);
    }
    std::this_thread::sleep_for(rendezvous.poll);
  }
  for (int rank = 1; rank < launch.ranks; ++rank) remove_quietly(file_of(rendezvous, rank));
  remove_quietly(rendezvous.file);
  return message;
}

std::string await(const Rendezvous& rendezvous, const Launch& launch) {
  const auto end = Clock::now() + rendezvous.timeout;
  std::random_device entropy;
  const std::string number = std::to_string(entropy()) + '-' + std::to_string(entropy());
  const std::string own = file_of(rendezvous, launch.rank);
  publish(own, number);
  const std::string line = std::to_string(launch.rank) + ' ' + number;
  for (;;) {
    const std::string text = contents(rendezvous.file);
    const std::size_t heading = text.find("\n\n");
    if (heading != std::string::npos &&
        ('\n' + text.substr(0, heading + 1)).find('\n' + line + '\n') != std::string::npos) {
      publish(own, number + std::string(taken));
      return text.substr(heading + 2);
    }
    if (Clock::now() > end) {
      remove_quietly(own);
      throw std::runtime_error(
          rendezvous.file + ": rank " + std::to_string(launch.rank) +
          " heard nothing of rank 0 in time: is it running, and is this a folder that all "
          "nodes share?");
    }
    std::this_thread::sleep_for(rendezvous.poll);
  }
}

}  // namespace

Launch launch_of(const Environment& environment) {
  for (const Names& names : launchers) {
    const char* const rank = environment(names.rank);
    if (rank == nullptr) continue;
    // A batch script has a rank too, which srun's steps alone have company to.
    const bool slurm = std::string_view(names.launcher) == "Slurm";
    if (slurm && environment(names.ranks) == nullptr) continue;
    Launch launch{.launcher = names.launcher};
    std::vector<Problem> problems;
    const auto read = [&](const char* name, int least, int most, int& value) {
      const char* const text = environment(name);
      const std::optional<int> found = text == nullptr ? std::nullopt : integer(text);
      if (found && *found >= least && *found <= most) {
        value = *found;
      } else {
        problems.push_back(
            {name, "must be an integer from " + std::to_string(least) + " to " + std::to_string(most) +
                       " beside " + names.rank +
                       (text == nullptr ? " (is not set)" : " (found '" + std::string(text) + "')")});
      }
    };
    read(names.ranks, 1, most_ranks, launch.ranks);
    read(names.rank, 0, problems.empty() ? launch.ranks - 1 : most_ranks, launch.rank);
    read(names.local_rank, 0, most_ranks, launch.local_rank);
    if (!problems.empty()) throw InputError(problems);
    // One where nothing usable says more.
    const auto divisor = [&](const char* name) {
      const char* const text = name == nullptr ? nullptr : environment(name);
      const int found = text == nullptr ? 0 : integer(text).value_or(0);
      return found >= 1 && launch.ranks % found == 0 ? found : 0;
    };
    if (const int local_ranks = divisor(names.local_ranks)) launch.nodes = launch.ranks / local_ranks;
    if (const int nodes = divisor(names.nodes)) launch.nodes = nodes;
    return launch;
  }
  return {};
}

std::int64_t nodes_of(const std::vector<std::uint64_t>& node_of_rank) {
  const std::set<std::uint64_t> nodes(node_of_rank.begin(), node_of_rank.end());
  const std::size_t in_node = node_of_rank.size() / nodes.size();
  bool even = node_of_rank.size() % nodes.size() == 0;
  for (std::size_t rank = 1; even && rank < node_of_rank.size(); ++rank) {
    even = (node_of_rank[rank] == node_of_rank[rank - 1]) == (rank % in_node != 0);
  }
  if (!even)
    throw InputError("ranks",
                     "must be numbered node by node, with as many on each (srun --distribution=block)");
  return static_cast<std::int64_t>(nodes.size());
}

std::string exchange(const Rendezvous& rendezvous, const Launch& launch, const std::string& message) {
  if (launch.ranks == 1) return message;
  return launch.rank == 0 ? offer(rendezvous, launch, message) : await(rendezvous, launch);
}

}  // namespace headroom::harness
