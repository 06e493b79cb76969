#include "harness/rendezvous.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/messages.hpp"

namespace headroom::harness {
namespace {

using namespace std::chrono_literals;

Launch launch_in(const std::map<std::string, std::string>& variables) {
  return launch_of([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

// A folder that goes away with the test.
struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / ("rendezvous-" + std::to_string(getpid()))) {
    std::filesystem::create_directory(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  [[nodiscard]] Rendezvous rendezvous(std::chrono::milliseconds timeout = 20s) const {
    return {.file = path / "id", .timeout = timeout, .poll = 5ms};
  }
  std::filesystem::path path;
};

void write(const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; }

// The exit code of a process that plays one rank: 0 where it heard the message.
pid_t start_rank(const Rendezvous& rendezvous, int rank, int ranks, const std::string& message) {
  const pid_t child = fork();
  if (child != 0) return child;
  int code = 1;
  try {
    const std::string own = rank == 0 ? message : "";
    if (exchange(rendezvous, {.rank = rank, .ranks = ranks}, own) == message) code = 0;
  } catch (const std::exception&) {
    code = 2;
  }
  _exit(code);
}
int end_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("rendezvous: who a process is, from its launcher") {
  CHECK(launch_in({}) == Launch{});
  CHECK(launch_in({{"RANK", "5"}, {"WORLD_SIZE", "16"}, {"LOCAL_RANK", "1"}}) ==
        Launch{.rank = 5, .ranks = 16, .local_rank = 1, .launcher = "torchrun"});
  const std::map<std::string, std::string> step{
      {"SLURM_PROCID", "9"}, {"SLURM_STEP_NUM_TASKS", "16"}, {"SLURM_LOCALID", "1"}};
  CHECK(launch_in(step) == Launch{.rank = 9, .ranks = 16, .local_rank = 1, .launcher = "Slurm"});
  // A batch script by itself, which Slurm numbers as well.
  CHECK(launch_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}, {"SLURM_LOCALID", "0"}}) == Launch{});
  CHECK(launch_in({{"OMPI_COMM_WORLD_RANK", "0"},
                   {"OMPI_COMM_WORLD_SIZE", "2"},
                   {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}}) ==
        Launch{.rank = 0, .ranks = 2, .local_rank = 0, .launcher = "Open MPI"});
}

TEST_CASE("rendezvous: how many nodes the launcher says there are") {
  const auto nodes_in = [](std::map<std::string, std::string> variables, const char* name,
                           const char* value) {
    variables[name] = value;
    return launch_in(variables).nodes;
  };
  const std::map<std::string, std::string> torchrun{{"RANK", "5"}, {"WORLD_SIZE", "16"}, {"LOCAL_RANK", "1"}};
  CHECK(nodes_in(torchrun, "LOCAL_WORLD_SIZE", "4") == 4);
  CHECK(nodes_in(torchrun, "LOCAL_WORLD_SIZE", "16") == 1);
  const std::map<std::string, std::string> step{
      {"SLURM_PROCID", "9"}, {"SLURM_STEP_NUM_TASKS", "16"}, {"SLURM_LOCALID", "1"}};
  CHECK(nodes_in(step, "SLURM_STEP_NUM_NODES", "2") == 2);
  // Not as many on each: one node is planned for.
  for (const char* const odd : {"3", "0", "-2", "17", "x", ""}) {
    CAPTURE(odd);
    CHECK(nodes_in(torchrun, "LOCAL_WORLD_SIZE", odd) == 1);
    CHECK(nodes_in(step, "SLURM_STEP_NUM_NODES", odd) == 1);
  }
}

TEST_CASE("rendezvous: a broken environment names every variable") {
  const auto mistake = [](const std::map<std::string, std::string>& variables) {
    return message_of([&] { return launch_in(variables); });
  };
  CHECK(mistake({{"RANK", "0"}}) ==
        "WORLD_SIZE: must be an integer from 1 to 65536 beside RANK (is not set)\n"
        "LOCAL_RANK: must be an integer from 0 to 65536 beside RANK (is not set)");
  CHECK(mistake({{"RANK", "4"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}}) ==
        "RANK: must be an integer from 0 to 3 beside RANK (found '4')");
  for (const char* const size : {"0", "-1", "2.5", "2 ", "", "99999999999999999999"}) {
    CAPTURE(size);
    CHECK(contains(mistake({{"RANK", "0"}, {"WORLD_SIZE", size}, {"LOCAL_RANK", "0"}}),
                   "WORLD_SIZE: must be an integer from 1 to 65536"));
  }
}

TEST_CASE("rendezvous: nodes are counted where ranks lie node by node") {
  CHECK(nodes_of({7, 7, 7, 7}) == 1);
  CHECK(nodes_of({7, 7, 3, 3}) == 2);
  CHECK(nodes_of({7, 3, 5}) == 3);
  for (const std::vector<std::uint64_t>& odd :
       {std::vector<std::uint64_t>{7, 3, 7, 3}, {7, 7, 3}, {7, 3, 3, 7}}) {
    CHECK(contains(message_of([&] { return nodes_of(odd); }), "node by node"));
  }
}

TEST_CASE("rendezvous: processes hear rank 0 and leave no file behind") {
  const Folder folder;
  const std::string message("an id\0with a zero and\n\nempty lines", 35);
  constexpr int ranks = 5;
  std::vector<pid_t> children;
  for (int rank = ranks - 1; rank >= 0; --rank)
    children.push_back(start_rank(folder.rendezvous(), rank, ranks, message));
  for (const pid_t child : children) CHECK(end_of(child) == 0);
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("rendezvous: files of an earlier job are no danger") {
  const Folder folder;
  write(folder.path / "id", "1 77-77\n2 88-88\n\nan old id");
  write(folder.path / "id.rank1", "77-77 taken");
  write(folder.path / "id.rank2", "88-88");
  const std::string message = "a new id";
  // Rank 0 long before the others and last of all.
  for (const bool first : {true, false}) {
    pid_t zero = first ? start_rank(folder.rendezvous(), 0, 3, message) : 0;
    std::this_thread::sleep_for(50ms);
    const pid_t one = start_rank(folder.rendezvous(), 1, 3, message);
    std::this_thread::sleep_for(50ms);
    const pid_t two = start_rank(folder.rendezvous(), 2, 3, message);
    if (!first) zero = start_rank(folder.rendezvous(), 0, 3, message);
    CHECK(end_of(zero) == 0);
    CHECK(end_of(one) == 0);
    CHECK(end_of(two) == 0);
    write(folder.path / "id", "1 77-77\n2 88-88\n\nan old id");
  }
}

TEST_CASE("rendezvous: who does not come is named after the timeout") {
  const Folder folder;
  const Rendezvous rendezvous = folder.rendezvous(150ms);
  write(folder.path / "id.rank2", "5-5");  // has come, and takes nothing
  const auto zero = [&] { return exchange(rendezvous, {.rank = 0, .ranks = 4}, "id"); };
  CHECK_THROWS_WITH(zero(), doctest::Contains("of 4 ranks these did not come in time: 1, 2, 3"));
  const auto one = [&] { return exchange(rendezvous, {.rank = 1, .ranks = 4}, ""); };
  CHECK_THROWS_WITH(one(), doctest::Contains("rank 1 heard nothing of rank 0 in time"));
  CHECK_FALSE(std::filesystem::exists(folder.path / "id"));
  CHECK_FALSE(std::filesystem::exists(folder.path / "id.rank1"));
  CHECK(exchange(rendezvous, {}, "alone") == "alone");
  const Rendezvous nowhere{.file = folder.path / "no such folder" / "id", .timeout = 10ms, .poll = 1ms};
  const auto lost = [&] { return exchange(nowhere, {.rank = 1, .ranks = 2}, ""); };
  CHECK_THROWS_WITH(lost(), doctest::Contains("cannot be written"));
}

}  // namespace headroom::harness
