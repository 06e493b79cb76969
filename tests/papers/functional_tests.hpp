// Megatron-LM's functional tests of dense GPTs as requests: the rows of shared/data/measured/megatron_memory.csv.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom::tests {

using FlagRow = std::map<std::string, std::string>;

inline std::vector<FlagRow> csv_rows(const std::filesystem::path& file) {
  const auto cells = [](const std::string& line) {
    std::vector<std::string> result;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) result.push_back(cell);
    return result;
  };
  std::ifstream input(file);
  std::string line;
  std::getline(input, line);
  const std::vector<std::string> names = cells(line);
  std::vector<FlagRow> rows;
  while (std::getline(input, line)) {
    const std::vector<std::string> values = cells(line);
    FlagRow row;
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = i < values.size() ? values[i] : "";
    rows.push_back(std::move(row));
  }
  return rows;
}

inline std::int64_t flag_number(const FlagRow& row, const std::string& name, std::int64_t otherwise) {
  const std::string& text = row.at(name);
  return text.empty() ? otherwise : std::stoll(text);
}

// Megatron-LM's functional test as a request. GPT with Megatron's defaults: GELU, biases, dropout, learned positions,
// GPT-2's vocabulary.
inline Request functional_test(const FlagRow& row) {
  const std::int64_t hidden = flag_number(row, "--hidden-size", 0);
  const std::int64_t heads = flag_number(row, "--num-attention-heads", 0);
  const std::int64_t layers = flag_number(row, "--num-layers", 0);
  const std::int64_t sequence = flag_number(row, "--seq-length", 0);
  const bool library = row.at("--transformer-impl") == "transformer_engine";
  Request request{.model = {.name = row.at("test_case"),
                            .hidden = hidden,
                            .feedforward = 4 * hidden,
                            .heads = heads,
                            .key_value_heads = flag_number(row, "--num-query-groups", heads),
                            .head_size = hidden / heads,
                            .layers = layers,
                            .vocabulary = flag_number(row, "--vocab-size", 50257),
                            .vocabulary_multiple = 128,
                            .sequence = sequence,
                            .max_positions = sequence},
                  .system = read_system("dgx-a100-80g"),
                  .software = read_software("megatron-2022")};
  request.model.architecture.tied_embeddings = row.at("--untie-embeddings-and-output-weights") != "true";
  // `auto` takes flash attention, which the small tests switch off for all of their library's backends.
  if (hidden == 4096) request.model.architecture.kernels.attention = AttentionKernel::flash;

  Strategy& strategy = request.strategy;
  strategy.tensor_parallel = flag_number(row, "--tensor-model-parallel-size", 1);
  strategy.pipeline_parallel = flag_number(row, "--pipeline-model-parallel-size", 1);
  const std::int64_t chunk = flag_number(row, "--num-layers-per-virtual-pipeline-stage", 0);
  if (chunk > 0) {
    strategy.virtual_pipeline = layers / strategy.pipeline_parallel / chunk;
    strategy.schedule = ScheduleKind::interleaved;
  }
  const std::int64_t devices = flag_number(row, "nodes", 1) * flag_number(row, "gpus_per_node", 8);
  strategy.data_parallel = devices / strategy.tensor_parallel / strategy.pipeline_parallel;
  strategy.micro_batch = flag_number(row, "--micro-batch-size", 1);
  if (row.at("--use-distributed-optimizer") == "true") strategy.data_sharding = DataSharding::zero1;
  if (row.at("--fp16") == "true") strategy.gradient_dtype = Dtype::half;
  request.workload = {.global_batch = flag_number(row, "--global-batch-size", 1), .sequence = sequence};

  // --deterministic-mode asks for CUBLAS_WORKSPACE_CONFIG=:4096:8, which PyTorch allocates for the forward thread and the
  // backward thread; Transformer Engine takes 4 MiB, and 32 MiB from Hopper on.
  const bool ampere = row.at("platform") == "a100" || row.at("platform") == "unknown";
  request.software.gradient_accumulation = GradientAccumulation::separate;
  request.software.memory = {.backward_buffers = true, .workspaces = 64_MiB};
  if (library) *request.software.memory.workspaces += ampere ? 4_MiB : 32_MiB;
  return request;
}

// The published peak is that of the last pipeline rank.
inline Bytes last_rank(const Request& request) {
  const Plan plan = account(evaluate(request));
  return total(plan.ranks.back()) - plan.ranks.back().reserved;
}

struct FunctionalTest {
  Request request;
  Bytes measured;
};

// Those that a strategy of ours can say: the others ask for microbatches that do not divide by the pipeline's depth.
inline std::vector<FunctionalTest> functional_tests(const std::filesystem::path& file) {
  std::vector<FunctionalTest> tests;
  for (const FlagRow& row : csv_rows(file)) {
    const std::string& name = row.at("test_case");
    const bool dense_gpt =
        row.at("suite") == "gpt" && row.at("--num-experts").empty() && name.find("grpo") == std::string::npos;
    if (!dense_gpt) continue;
    Request request = functional_test(row);
    if (!illegalities(request.model, request.strategy, request.workload, request.software).empty()) continue;
    tests.push_back({std::move(request), Bytes(std::stod(row.at("mem_max_allocated_bytes_max")))});
  }
  return tests;
}

}  // namespace headroom::tests
