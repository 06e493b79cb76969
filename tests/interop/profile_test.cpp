// Profiles as samples: which kernel belongs to which operator, what shapes make of it, and what broken files are told.
#include "headroom/interop/profile.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <zlib.h>

#include "headroom/calibrate/fit_rates.hpp"
#include "headroom/io/system_file.hpp"
#include "interop/profiled_product.hpp"
#include "io/messages.hpp"
#include "paths.hpp"

namespace headroom {
namespace {

constexpr std::int64_t per_node = 8;

// An operator from `at` on for 10 us, and how PyTorch records its arguments.
std::string operator_event(const std::string& name, double at, const std::string& args, double lasts = 10) {
  return fmt::format(
      R"({{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 1, "tid": 2, "ts": {}, "dur": {}, "args": {{{}}}}})",
      name, at, lasts, args);
}

// The launch of a kernel at a time, and the kernel, which runs later.
std::string kernel_events(const std::string& name, double launched, double microseconds,
                          const std::string& args = "") {
  static int correlation = 0;
  ++correlation;
  return fmt::format(
      R"({{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": {1}, "dur": 1,
          "args": {{"correlation": {0}}}}},
         {{"ph": "X", "cat": "kernel", "name": "{2}", "pid": 0, "tid": 7, "ts": {3}, "dur": {4},
          "args": {{"correlation": {0}, "device": 0{5}}}}})",
      correlation, launched, name, launched + 1000, microseconds, args);
}

std::string trace_of(const std::vector<std::string>& events) {
  return fmt::format(
      R"({{"schemaVersion": 1, "deviceProperties": [{{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}}],
    "traceEvents": [{}], "traceName": "step.json"}})",
      fmt::join(events, ",\n"));
}

Profile read(const std::vector<std::string>& events) {
  return parse_profile(trace_of(events), "step.json", per_node);
}

const std::string mm =
    R"("Input Dims": [[4096, 1024], [1024, 512]], "Input type": ["c10::BFloat16", "c10::BFloat16"])";

std::string gzipped(const std::string& text) {
  std::string packed(text.size() + 1000, '\0');
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string copy = text;
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

TEST_CASE("profile: a product has the shape of the innermost operator at its launch, and the median time") {
  const Profile profile = read({operator_event("aten::linear", 0, "", 30), operator_event("aten::mm", 5, mm),
                                kernel_events("gemm", 6, 100), operator_event("aten::mm", 105, mm),
                                kernel_events("gemm", 106, 300), kernel_events("splitKreduce", 107, 20),
                                operator_event("aten::mm", 205, mm), kernel_events("gemm", 206, 140)});
  tests::check_product_of_three_times(profile);
  CHECK(profile.samples.device == "NVIDIA A100-SXM4-80GB");
  REQUIRE(profile.parts.size() == 1);
  CHECK(profile.parts.front() == ProfilePart{.work = "matrix products",
                                             .problem = "",
                                             .kernels = 4,
                                             .time = profile.parts.front().time,
                                             .shapes = 1});
  CHECK(profile.parts.front().time.count() == doctest::Approx(560e-6));
}

TEST_CASE("profile: batched and added products, and those of 8 bits") {
  const std::string half = R"("c10::Half", "c10::Half", "c10::Half")";
  const Profile profile = read(
      {operator_event("aten::baddbmm", 0,
                      R"("Input Dims": [[8, 3, 5], [8, 3, 4], [8, 4, 5]], "Input type": [)" + half + "]"),
       kernel_events("gemm", 1, 5),
       operator_event("aten::addmm", 20,
                      R"("Input Dims": [[5], [3, 4], [4, 5]], "Input type": [)" + half + "]"),
       kernel_events("gemm", 21, 5),
       operator_event("aten::_scaled_mm", 40,
                      R"("Input Dims": [[256, 512], [512, 128], [256, 4], [4, 1]],
                         "Input type": ["c10::Float8_e4m3fn", "c10::Float8_e4m3fn", "float", "float"])"),
       kernel_events("nvjet", 41, 5)});
  REQUIRE(profile.samples.samples.size() == 3);
  CHECK(profile.samples.samples[0].product == Gemm{.batch = 8, .rows = 3, .columns = 5, .inner = 4});
  CHECK(profile.samples.samples[1].product == Gemm{.rows = 3, .columns = 5, .inner = 4});
  CHECK(profile.samples.samples[2].dtype == Dtype::fp8_blockwise);
  CHECK(profile.samples.samples[2].product.dtype == Dtype::fp8_blockwise);
}

TEST_CASE("profile: flash attention is read where its mask is recorded") {
  const auto forward = [](const std::string& causal) {
    return operator_event("aten::_flash_attention_forward", 0,
                          fmt::format(R"(
      "Input Dims": [[2, 4096, 32, 128], [2, 4096, 8, 128], [2, 4096, 8, 128], [], [], [], [], [], []],
      "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "", "", "Scalar", "Scalar", "Scalar", "Scalar"],
      "Concrete Inputs": ["", "", "", "", "", "4096", "4096", "0.", "{}", "False"])",
                                      causal));
  };
  const Profile profile = read({forward("True"), kernel_events("flash_fwd_kernel", 1, 700)});
  REQUIRE(profile.samples.samples.size() == 1);
  const Sample& sample = profile.samples.samples.front();
  CHECK(sample.kind == SampleKind::attention);
  CHECK(sample.attention.heads == 32);
  CHECK(sample.attention.kv_heads == 8);
  CHECK(sample.attention.queries == 4096);
  CHECK(sample.attention.head_size == 128);
  CHECK(sample.attention.mask == Mask::causal);
  const Profile unknown = read({forward(""), kernel_events("flash_fwd_kernel", 1, 700)});
  CHECK(unknown.samples.samples.empty());
  CHECK(contains(unknown.parts.front().problem, "no mask"));
}

TEST_CASE("profile: an attention operator that calls another of them is read by the inner one") {
  const std::string shapes =
      R"("Input Dims": [[2, 32, 4096, 128], [2, 8, 4096, 128], [2, 8, 4096, 128], [], [], [], [],
      [], [], [], []], "Input type": ["c10::Half", "c10::Half", "c10::Half", "", "", "", "", "", "", "", ""],)";
  const Profile profile = read(
      {operator_event("aten::_scaled_dot_product_cudnn_attention", 0,
                      shapes + R"("Concrete Inputs": ["", "", "", "", "True", "0.", "False"])", 30),
       operator_event(
           "aten::_cudnn_attention_forward", 5,
           shapes + R"("Concrete Inputs": ["", "", "", "", "", "", "4096", "4096", "True", "0.", "True"])"),
       kernel_events("cudnn_generated_fort_native_sdpa", 6, 700)});
  REQUIRE(profile.samples.samples.size() == 1);
  const Attention& attention = profile.samples.samples.front().attention;
  CHECK(attention.heads == 32);
  CHECK(attention.kv_heads == 8);
  CHECK(attention.queries == 4096);
  CHECK(attention.mask == Mask::causal);
}

TEST_CASE("profile: of a collective the shortest time counts, and its ranks tell its nodes") {
  const auto gather = [](double microseconds, const std::string& ranks) {
    return kernel_events(
        "ncclDevKernel_AllGather_RING_LL", 1, microseconds,
        fmt::format(
            R"(, "Collective name": "_allgather_base", "In msg nelems": 1048576, "Out msg nelems": 8388608, "Group size": 8,
         "dtype": "BFloat16", "Process Group Ranks": {})",
            ranks));
  };
  const Profile profile =
      read({gather(400, R"("[0, 1, 2, 3, 4, 5, 6, 7]")"), gather(250, "[0, 1, 2, 3, 4, 5, 6, 7]"),
            gather(900, R"("[0, 8, ..., 56]")"), gather(100, R"("")")});
  REQUIRE(profile.samples.samples.size() == 2);
  const Sample& near = profile.samples.samples[0];
  CHECK(near.kind == SampleKind::all_gather);
  CHECK(near.bytes == 16_MiB);
  CHECK(near.ranks == 8);
  CHECK(near.nodes == 1);
  CHECK(near.median.count() == doctest::Approx(250e-6));
  CHECK(profile.samples.samples[1].nodes == 8);
  CHECK(profile.parts.back().problem == "over ranks that are not recorded");
}

TEST_CASE("profile: a memory-bound kernel moves what its operator reads and writes") {
  const auto bytes_of = [](const std::string& name, const std::string& args) {
    const Profile profile = read({operator_event(name, 0, args), kernel_events("elementwise_kernel", 1, 50)});
    return profile.samples.samples.empty() ? 0 : profile.samples.samples.front().bytes.count();
  };
  CHECK(bytes_of("aten::add", R"("Input Dims": [[512, 64], [64], []],
                                 "Input type": ["c10::BFloat16", "float", "Scalar"])") ==
        512 * 64 * 2 + 64 * 4 + 512 * 64 * 4);
  CHECK(bytes_of("aten::copy_", R"("Input Dims": [[512, 64], [512, 64], []],
                                   "Input type": ["c10::BFloat16", "float", "Scalar"])") ==
        512 * 64 * (2 + 4));
  CHECK(bytes_of("aten::native_dropout", R"("Input Dims": [[1024]], "Input type": ["c10::Half"])") ==
        1024 * 5);
  CHECK(bytes_of("aten::add", R"("Input Dims": [[512, 64], [63]], "Input type": ["float", "float"])") == 0);
  CHECK(bytes_of("aten::mul", R"("Input Dims": [[512]], "Input type": ["c10::complex<float>"])") == 0);
}

TEST_CASE("profile: what is no sample is named, with its kernels and their time") {
  const Profile profile = read(
      {operator_event("aten::mm", 0, R"("Input Dims": [[8, 8], [8, 8]], "Input type": ["float", "float"])"),
       kernel_events("sgemm", 1, 40), kernel_events("cutlass_80_gemm", 500, 30),
       kernel_events("sort", 600, 20), kernel_events("ncclKernel_SendRecv", 700, 10)});
  CHECK(profile.samples.samples.empty());
  const auto problem = problem_of(profile);
  REQUIRE(problem.has_value());
  CHECK(contains(problem->rule, "1 matrix products in fp32 or TF32, which no rate is fitted to"));
  CHECK(contains(problem->rule, "1 matrix products whose shapes are not recorded"));
  CHECK(contains(problem->rule, "record_shapes=True"));
}

TEST_CASE("profile: broken files are told what is wrong with them, wherever they end") {
  const auto message = [](const std::string& text) {
    return message_of([&] { return parse_profile(text, "step.json", per_node); });
  };
  CHECK(contains(message(""), "is no profile"));
  CHECK(contains(message("m,n,k,milliseconds"), "is no profile"));
  CHECK(contains(message("[]"), "is no profile"));
  CHECK(contains(message("{}"), "no list \"traceEvents\""));
  CHECK(contains(message(R"({"traceEvents": []})"), "holds no kernels"));
  CHECK(contains(message(R"({"traceEvents": [{"a": 1e999}]})"), "out of range"));
  CHECK(contains(message(R"({"traceEvents": [{"a": nan}]})"), "is not JSON"));
  CHECK(contains(message(R"({"traceEvents": )" + std::string(100, '[')), "nested deeper"));
  const std::string whole = trace_of({operator_event("aten::mm", 0, mm), kernel_events("gemm", 1, 5)});
  const std::string packed = gzipped(whole);
  CHECK(parse_profile(packed, "step.json.gz", per_node).samples.samples.size() == 1);
  const std::string members = gzipped(whole.substr(0, 100)) + gzipped(whole.substr(100));
  CHECK(parse_profile(members, "step.json.gz", per_node).parts.size() == 1);
  for (std::size_t end = 1; end < whole.size(); end += 5) CHECK(!message(whole.substr(0, end)).empty());
  CHECK(contains(message(whole.substr(0, whole.size() / 2)), "is cut off after 1 event:"));
  CHECK(contains(message(packed.substr(0, packed.size() / 2)), "compressed data ends early"));
  std::string damaged = packed;
  damaged[packed.size() / 2] = static_cast<char>(damaged[packed.size() / 2] ^ 0x55);
  damaged[packed.size() / 2 + 1] = static_cast<char>(damaged[packed.size() / 2 + 1] ^ 0x55);
  CHECK(!message(damaged).empty());
  CHECK(contains(message_of([] { return read_profile("/", per_node); }), "directory"));
  CHECK(contains(message_of([] { return read_profile("/no/such/trace.json", per_node); }), "cannot be read"));
}

TEST_CASE("profile: products of a step tell the clock that it sustains") {
  System base = read_system("dgx-a100-80g");
  Performance slower = *base.performance;
  slower.rates.products.sustained.value = 0.8;
  std::vector<std::string> events;
  double at = 0;
  for (const std::int64_t columns : {1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192}) {
    Sample sample{.kind = SampleKind::matrix_product, .load = Load::sustained};
    sample.product = {.rows = 4096, .columns = columns, .inner = 4096};
    const double time = predicted_time(sample, slower)->count() * 1e6;
    events.push_back(operator_event("aten::mm", at,
                                    fmt::format(R"("Input Dims": [[4096, 4096], [4096, {}]],
        "Input type": ["c10::BFloat16", "c10::BFloat16"])",
                                                columns)));
    events.push_back(kernel_events("gemm", at + 1, time));
    at += 100;
  }
  const Calibration fitted = calibrate({read(events).samples}, base);
  CHECK(fitted.system.performance->rates.products.sustained.value == doctest::Approx(0.8).epsilon(0.005));
  CHECK(fitted.system.performance->rates.products.tile_peak == base.performance->rates.products.tile_peak);
}

SHARED_TEST_CASE("profile: traces of real programs are read, and what they hold is accounted for") {
  struct Trace {
    const char* name;
    std::size_t kernels;
    std::size_t samples;
  };
  for (const Trace& trace :
       {Trace{"a100_alexnet", 79, 0}, Trace{"a100_nccl_args", 2700, 5}, Trace{"a100_shapes", 8568, 195},
        Trace{"mi250_toy", 14, 5}, Trace{"sampled", 1154, 105}}) {
    CAPTURE(trace.name);
    const auto file = tests::shared_file(fmt::format("data/traces/{}.json.gz", trace.name));
    if (!file) return;
    const Profile profile = read_profile(file->string(), per_node);
    std::size_t kernels = 0;
    for (const ProfilePart& part : profile.parts) kernels += part.kernels;
    CHECK(kernels == trace.kernels);
    CHECK(profile.samples.samples.size() == trace.samples);
  }
}

}  // namespace
}  // namespace headroom
