#include "headroom/calibrate/measured_run.hpp"

#include <set>

#include <doctest/doctest.h>

#include "calibrate/own_run.hpp"
#include "headroom/calibrate/sample.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/run_cases.hpp"
#include "headroom/io/runs_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/source_file.hpp"
#include "headroom/io/system_file.hpp"

namespace headroom {
namespace {

using tests::own_run;

MeasuredRun from(std::string key) {
  MeasuredRun run = own_run();
  run.key = std::move(key);
  return run;
}

RunCase made(const MeasuredRun& run) {
  const std::optional<PublishedSource> source =
      run.key.empty() ? std::nullopt : std::optional(read_source(run.key));
  return case_of(run, source ? &*source : nullptr, read_system("dgx-a100-80g"),
                 read_software("megatron-2022"));
}
Request request_of(const MeasuredRun& run) { return std::get<MeasuredCase>(made(run)).request; }
std::vector<std::string> reasons(const MeasuredRun& run) {
  return std::get<std::vector<std::string>>(made(run));
}
std::string reason(const MeasuredRun& run) {
  const std::vector<std::string> all = reasons(run);
  return all.size() == 1 ? all.front() : std::to_string(all.size()) + " reasons";
}

const char* const bloom = "bloom";
const char* const zero_bubble = "zero-bubble";

}  // namespace

TEST_CASE("one's own run becomes the request that it describes") {
  const Request request = request_of(own_run());
  CHECK(request.model.feedforward == 4 * 2048);
  CHECK(request.model.key_value_heads == 16);
  CHECK(request.strategy.tensor_parallel == 2);
  CHECK(request.strategy.sequence_parallel);
  CHECK(request.strategy.recompute.policy == RecomputePolicy::selective);
  CHECK(request.strategy.gradient_dtype == Dtype::fp32);
  CHECK(request.strategy.schedule == ScheduleKind::one_forward_one_backward);
  CHECK(request.workload == Workload{.global_batch = 32, .sequence = 2048});
  CHECK(label_of(own_run(), nullptr) == "own runs");
  CHECK(presets_of(own_run(), nullptr) == RunPresets{.system = "dgx-a100-80g", .software = "megatron-2022"});
}

TEST_CASE("a gated run is a relative of Llama, flash attention is what it says") {
  MeasuredRun run = own_run();
  run.gated = true;
  run.flash_attention = true;
  const Architecture architecture = request_of(run).model.architecture;
  CHECK(architecture.activation == Activation::swiglu);
  CHECK(architecture.normalization == Normalization::rms_norm);
  CHECK_FALSE(architecture.hidden_dropout);
  CHECK(architecture.kernels.attention == AttentionKernel::flash);
}

TEST_CASE("published sources bring their system, software and targets by key") {
  const PublishedSource source = read_source(bloom);
  CHECK(presets_of(from(bloom), &source) == RunPresets{"jean-zay-a100-80g", "megatron-deepspeed-2022"});
  CHECK(label_of(from(bloom), &source) == "BLOOM");
  CHECK(targets_of(source).front().median == 0.08);
  // One that measured on several GPUs names no system: that of each run's GPU holds, and what runs state of its network.
  const PublishedSource kempner = read_source("kempnerforge");
  CHECK(presets_of(from("kempnerforge"), &kempner) == RunPresets{"dgx-a100-80g", "kempnerforge-2026"});
  CHECK(targets_of(read_source(zero_bubble)).size() == 2);
  CHECK(targets_of(read_source(zero_bubble)).back().group == "Zero Bubble, memory");
}

TEST_CASE("a title without a key is only a title") {
  for (const PublishedSource& source : list_sources()) {
    std::vector<std::string> titles = source.titles;
    titles.push_back(source.label);
    titles.push_back("our rerun of the " + source.label + " configurations");
    for (const std::string& title : titles) {
      CAPTURE(title);
      MeasuredRun run = own_run();
      run.source = title;
      CHECK(label_of(run, nullptr) == "'" + title + "'");
      CHECK(presets_of(run, nullptr) == presets_of(own_run(), nullptr));
      Request titled = request_of(run);
      titled.model.source = "";
      CHECK(titled == request_of(own_run()));
    }
  }
}

TEST_CASE("a run's own settings are laid over those of its source") {
  MeasuredRun run = from(bloom);
  run.settings.gradient_dtype = Dtype::fp32;
  CHECK(request_of(run).strategy.gradient_dtype == Dtype::fp32);
  CHECK(request_of(run).model.architecture.positions == Positions::alibi);
  MeasuredRun own = own_run();
  own.settings = {.gradient_dtype = Dtype::half, .ends_count_as_layers = true, .overlap_grad_reduce = true};
  CHECK(request_of(own).strategy.gradient_dtype == Dtype::half);
  CHECK(request_of(own).strategy.stage_layers == std::vector<std::int64_t>{12, 12});
  CHECK(request_of(own).software.overlap_grad_reduce);
  own.settings.overlap_tensor_parallel = TensorOverlap::full;
  own.settings.overlap_param_gather = own.settings.overlap_p2p = true;
  CHECK(request_of(own).software.overlap_tensor_parallel == TensorOverlap::full);
  CHECK(request_of(own).software.overlap_param_gather);
  CHECK(request_of(own).software.overlap_p2p);
}

TEST_CASE("one's own run finds the system of its device") {
  const auto system_of_device = [](const std::string& device) {
    MeasuredRun run = own_run();
    run.device = device;
    return presets_of(run, nullptr).system.value_or("none");
  };
  std::set<std::string> devices;
  for (const System& system : list_systems()) {
    // One that stands on another does not take its runs.
    const bool of_a_cluster = system.name.ends_with("-a100-80g") && !system.name.starts_with("dgx-");
    CHECK(system.runs_of.empty() == of_a_cluster);
    for (const std::string& device : system.runs_of) {
      CHECK(devices.insert(device).second);
      CHECK(system_of_device(device) == system.name);
      CHECK(same_device(device, system.device));
    }
  }
}

TEST_CASE("BLOOM: alibi, ZeRO 1, and ends that count as layers where its partition says so") {
  MeasuredRun run = from(bloom);
  run.zero_stage = 1;
  run.dtype = "fp16";
  CHECK(request_of(run).model.architecture.positions == Positions::alibi);
  CHECK(request_of(run).strategy.data_sharding == DataSharding::zero1);
  CHECK(request_of(run).strategy.gradient_dtype == Dtype::half);
  CHECK(request_of(run).strategy.stage_layers.empty());
  run.dtype = "bf16";
  CHECK(request_of(run).strategy.gradient_dtype == Dtype::fp32);
  run.overlap = "partition type:transformer|embedding";  // not the words of a row
  CHECK(request_of(run).strategy.stage_layers.empty());
  run.overlap =
      "Megatron-DeepSpeed, ZeRO-1; partition type:transformer|embedding: embedding & LM head count as layers";
  CHECK(request_of(run).strategy.stage_layers == std::vector<std::int64_t>{12, 12});
}

TEST_CASE("Zero Bubble: chunks of one layer, the first and the last with embedding and head alone") {
  MeasuredRun run = from(zero_bubble);
  run.layers = 6;
  run.pipeline_parallel = 4;
  run.virtual_pipeline = 2;
  run.schedule = "1F1B-I";
  run.vocabulary.reset();
  run.recompute.reset();
  const Request request = request_of(run);
  CHECK(request.strategy.schedule == ScheduleKind::interleaved);
  CHECK(request.strategy.stage_layers == std::vector<std::int64_t>{0, 1, 1, 1, 1, 1, 1, 0});
  CHECK_FALSE(request.model.architecture.tied_embeddings);
  CHECK(request.model.vocabulary == 32000);
  CHECK(request.strategy.recompute.policy == RecomputePolicy::none);
}

TEST_CASE("Zero Bubble: what its search found is predicted as the orders made by hand of as much in flight") {
  MeasuredRun run = from(zero_bubble);
  for (const auto& [named, kind] : {std::pair{"ZB-H1", ScheduleKind::zero_bubble_h1},
                                    {"ZB-1p", ScheduleKind::zero_bubble_h1},
                                    {"ZB-2p", ScheduleKind::zero_bubble_2p},
                                    {"ZB-H2", ScheduleKind::zero_bubble_h2}}) {
    run.schedule = named;
    CHECK(request_of(run).strategy.schedule == kind);
  }
  run.schedule = "ZB-vhalf";
  CHECK(reason(run) == "not modelled yet: schedule ZB-vhalf");
}

TEST_CASE("PyTorch's data parallelism reduces gradients in the backward pass") {
  MeasuredRun run = from("sc21");
  CHECK_FALSE(request_of(run).software.overlap_grad_reduce);
  run.overlap = "DDP-impl=torch";  // not the words of a row
  CHECK_FALSE(request_of(run).software.overlap_grad_reduce);
  run.overlap =
      "DDP-impl=torch (grad all-reduce overlapped with backward); scatter/gather p2p optimisation on; no SP, "
      "no "
      "distributed optimizer";
  CHECK(request_of(run).software.overlap_grad_reduce);
}

TEST_CASE("memory is in its unit, and a device's or an allocator's") {
  MeasuredRun run = own_run();
  run.memory = 30;
  const auto figure = [](const MeasuredRun& it) { return std::get<MeasuredCase>(made(it)).figures.at(1); };
  CHECK(figure(run) == Figure{.measure = Measure::allocated_bytes, .value = 30e9});
  run.memory_unit = "GiB max_allocated";
  CHECK(figure(run) == Figure{.measure = Measure::allocated_bytes, .value = 30 * gibi});
  run.memory_unit = "GiB nvidia-smi";
  CHECK(figure(run) == Figure{.measure = Measure::device_bytes, .value = 30 * gibi});
  run.memory_unit.clear();
  run.caveats = "Mem is nvidia-smi max, rounded";
  CHECK(figure(run) == Figure{.measure = Measure::device_bytes, .value = 30e9});
  run.caveats = "peak_memory_usage of a log of NeMo";
  CHECK(figure(run) == Figure{.measure = Measure::reserved_bytes, .value = 30e9});
  run.memory_unit = "GiB max_reserved";
  run.reserved_gib = 31;
  CHECK(figure(run) == Figure{.measure = Measure::reserved_bytes, .value = 30 * gibi});
  CHECK(std::get<MeasuredCase>(made(run)).figures.at(2) ==
        Figure{.measure = Measure::reserved_bytes, .value = 31 * gibi});
}

TEST_CASE(
    "memory is what the allocator held where the logs of the stack say that, unless the unit says "
    "otherwise") {
  MeasuredRun run = own_run();
  run.memory = 30;
  const auto measure = [&](bool logs_reserved) {
    Software software = read_software("megatron-2022");
    software.memory.logs_reserved = logs_reserved;
    const RunCase it = case_of(run, nullptr, read_system("dgx-a100-80g"), software);
    return std::get<MeasuredCase>(it).figures.at(1).measure;
  };
  CHECK(measure(false) == Measure::allocated_bytes);
  CHECK(measure(true) == Measure::reserved_bytes);
  run.memory_unit = "GiB max_allocated";
  CHECK(measure(true) == Measure::allocated_bytes);
}

TEST_CASE("what cannot be predicted is skipped with the reason") {
  const auto changed = [](auto change) {
    MeasuredRun run = own_run();
    change(run);
    return reason(run);
  };
  const auto sharded = [](const std::string& text) {
    return text.starts_with("data_sharding must be none or zero1 on the stack ") &&
           text.ends_with(", not zero3");
  };
  const std::string narrow = "not stated: precision.recipe";
  CHECK(changed([](auto& run) { run.iteration.reset(); }) ==
        "not stated: an iteration time or a peak memory");
  CHECK(changed([](auto& run) { run.lacking = {"model.gated_mlp"}; }) == "not stated: model.gated_mlp");
  CHECK(changed([](auto& run) { run.unmodelled = {"Mamba layers"}; }) == "not modelled yet: Mamba layers");
  CHECK(changed([](auto& run) { run.dense = false; }) == "not stated: model.moe");
  CHECK(changed([](auto& run) { run.cp_comm = "zigzag"; }) ==
        "not modelled yet: context parallelism by 'zigzag'");
  CHECK(changed([](auto& run) { run.dispatcher = "pigeons"; }) == "not modelled yet: dispatch by 'pigeons'");
  CHECK(sharded(changed([](auto& run) { run.fully_sharded = true; })));
  CHECK(sharded(changed([](auto& run) { run.zero_stage = 3; })));
  CHECK(changed([](auto& run) { run.dtype = "fp8 (hybrid)"; }) == narrow);
  CHECK(changed([](auto& run) { run.dtype = "float8 (rowwise)"; }) == narrow);
  CHECK(changed([](auto& run) { run.recipe = "rowwise"; }) == "not modelled yet: GEMMs of recipe 'rowwise'");
  CHECK(changed([](auto& run) { run.dtype = "tf32"; }) == "not modelled yet: GEMMs in 'tf32'");
  CHECK(changed([](auto& run) { run.schedule = "BitPipe"; }) == "not modelled yet: schedule BitPipe");
  CHECK(changed([](auto& run) { run.recompute = "some"; }) == "not modelled yet: recompute 'some'");
  CHECK(changed([](auto& run) { run.recompute.reset(); }) == "not stated: recompute");
  CHECK(changed([](auto& run) { run.vocabulary.reset(); }) == "not stated: model.vocab");
  CHECK(changed([](auto& run) { run.sequence_parallel.reset(); }) == "not stated: parallel.sp");
  CHECK(changed([](auto& run) { run.heads = 15; }) ==
        "not stated: model.head_dim, and hidden 2048 is no multiple of heads 15");
  CHECK(changed([](auto& run) { run.global_batch = 33; }).starts_with("global_batch must be a multiple"));
}

TEST_CASE("a run is skipped with every reason that it has, each once") {
  MeasuredRun run = own_run();
  run.lacking = {"model.heads"};
  run.dense = false;
  run.unmodelled = {"FP8 attention", "FP8 attention"};
  run.dtype = "fp8 (hybrid)";
  run.recompute = "modules: mlp, mlps";
  CHECK(reasons(run) == std::vector<std::string>{"not stated: model.heads", "not stated: precision.recipe",
                                                 "not stated: model.moe", "not modelled yet: FP8 attention",
                                                 "not modelled yet: recompute 'modules: mlp, mlps'"});
  run = own_run();
  run.global_batch = 33;
  run.tensor_parallel = 3;
  CHECK(reasons(run).size() > 2);
}

TEST_CASE("a run of which only the memory was measured is a case of that") {
  MeasuredRun run = own_run();
  run.iteration.reset();
  run.memory = 30;
  CHECK(std::get<MeasuredCase>(made(run)).figures ==
        std::vector<Figure>{{.measure = Measure::allocated_bytes, .value = 30e9}});
}

TEST_CASE("head size, dtypes of the optimizer and a named model are what the run says") {
  MeasuredRun run = own_run();
  run.heads = 15;
  run.tensor_parallel = 1;
  run.data_parallel = 4;
  run.head_size = 128;
  run.normalization = Normalization::rms_norm;
  run.qkv_bias = false;
  run.main_params = MainParams::remainder;
  run.exp_avg = run.exp_avg_sq = MomentDtype::bf16;
  const Request request = request_of(run);
  CHECK(request.model.head_size == 128);
  CHECK(request.model.architecture.normalization == Normalization::rms_norm);
  CHECK_FALSE(request.model.architecture.qkv_bias);
  CHECK(request.strategy.optimizer == Optimizer{.main_params = MainParams::remainder,
                                                .exp_avg = MomentDtype::bf16,
                                                .exp_avg_sq = MomentDtype::bf16});
  run.model = read_model("llama-2-7b");
  CHECK(request_of(run).model == *run.model);
}

TEST_CASE("words of overlap count where they are names of launch flags, and a source's words are its own") {
  const auto overlap = [](const std::string& words) {
    MeasuredRun run = own_run();
    run.overlap = words;
    return request_of(run).software;
  };
  const Software stack = request_of(own_run()).software;
  CHECK(overlap("DDP-impl=torch (grad all-reduce overlapped with backward)") == stack);
  CHECK(overlap("no gradient bucketing/overlap (use_gradient_bucket false in vTrain config)") == stack);
  const Software on = overlap("overlap_grad_sync, --overlap-param-gather; p2p overlap (ub_tp_comm_overlap)");
  CHECK(on.overlap_grad_reduce);
  CHECK(on.overlap_param_gather);
  CHECK(on.overlap_p2p);
  CHECK(on.overlap_tensor_parallel == TensorOverlap::full);
  CHECK(overlap("overlap_grad_sync/param_sync").overlap_param_gather);
  const Software off = overlap("overlap_grad_reduce=false, TP comm overlap AG/RS disabled in a script");
  CHECK_FALSE(off.overlap_grad_reduce);
  CHECK(off.overlap_tensor_parallel == TensorOverlap::backward);
  CHECK(overlap("FSDP2+TP8, compile, async TP").overlap_tensor_parallel == TensorOverlap::full);
  MeasuredRun run = from("sc21");
  run.overlap = "overlap_grad_sync";
  CHECK_FALSE(request_of(run).software.overlap_grad_reduce);
  run = own_run();
  run.overlap = "overlap_grad_sync";
  run.settings.overlap_grad_reduce = false;
  CHECK_FALSE(request_of(run).software.overlap_grad_reduce);
}

}  // namespace headroom
