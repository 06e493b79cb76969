// How the processes of one job, one for each GPU and over several nodes, find each other: who they are from what the
// launcher left in the environment, and one message of rank 0 to all others (NCCL's unique id) through a file in a
// folder that all nodes share.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace headroom::harness {

struct Launch {
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;    // on its node: the GPU to take
  int nodes = 1;         // as the launcher says: for plans only, a run counts them
  std::string launcher;  // "torchrun", "Slurm", "Open MPI"; empty for a process alone
  friend bool operator==(const Launch&, const Launch&) = default;
};

// How many nodes the ranks are on, given something of each rank's node that no other node has. Throws InputError unless
// ranks are numbered node by node, as many on each.
std::int64_t nodes_of(const std::vector<std::uint64_t>& node_of_rank);

using Environment = std::function<const char*(const char*)>;  // as std::getenv

// Reads RANK, WORLD_SIZE, LOCAL_RANK; or SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID (which srun sets; a batch
// script by itself is one process); or OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_LOCAL_RANK: the first
// triple whose rank is set. Nodes come from LOCAL_WORLD_SIZE, SLURM_STEP_NUM_NODES or OMPI_COMM_WORLD_LOCAL_SIZE.
// Throws InputError where others of a triple are missing or out of range.
Launch launch_of(const Environment& environment);

struct Rendezvous {
  std::string
      file;  // in a folder that all nodes share; others are made beside it, and all are removed at the end
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  std::chrono::milliseconds poll = std::chrono::milliseconds(100);
};

// Brings rank 0's message to all ranks; returns it. Each other rank writes a file with a number of its own, and takes
// only a message that names this number, so that files of an earlier job are no danger. Throws std::runtime_error after
// the timeout, naming the ranks that did not come.
std::string exchange(const Rendezvous& rendezvous, const Launch& launch, const std::string& message);

}  // namespace headroom::harness
