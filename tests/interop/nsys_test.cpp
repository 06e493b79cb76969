// Exports of Nsight Systems as samples: databases that the tests make, in the tables and columns that nsys documents.
#include <array>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include "headroom/interop/profile.hpp"
#include "interop/nvtx_range.hpp"
#include "interop/profiled_product.hpp"
#include "io/messages.hpp"
#include "paths.hpp"

namespace headroom {
namespace {

constexpr std::int64_t gpus_a_node = 8;
constexpr std::int64_t process = std::int64_t{77} << 24;

const std::string strings_table = "create table StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT);";
const std::string kernel_table =
    R"(create table CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, "end" INTEGER NOT NULL, deviceId INTEGER,
         correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL);)";
const std::string other_tables =
    R"(create table CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, "end" INTEGER NOT NULL, globalTid INTEGER,
         correlationId INTEGER);
       create table CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, "end" INTEGER, bytes INTEGER, copyKind INTEGER);
       create table NVTX_EVENTS (start INTEGER NOT NULL, "end" INTEGER, eventType INTEGER NOT NULL, text TEXT,
         globalTid INTEGER, textId INTEGER, domainId INTEGER, binaryData BLOB);
       create table NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER, schemaId INTEGER, idx INTEGER, type INTEGER,
         name TEXT, offset INTEGER);
       insert into NVTX_PAYLOAD_SCHEMA_ENTRIES values (3, 1, 0, 18, 'NCCL communicator ID', NULL),
         (3, 1, 1, 5, 'No. of ranks', 8), (3, 1, 2, 5, 'Rank', 12), (3, 2, 0, 18, 'NCCL communicator ID', NULL),
         (3, 2, 1, 22, 'Message size [bytes]', 8);
       create table TARGET_INFO_GPU (id INTEGER, name TEXT, clockRate INTEGER);
       insert into TARGET_INFO_GPU values (0, 'NVIDIA H100 80GB HBM3', 1980000000);)";

// The bytes of a database that these statements make.
std::string database_of(const std::string& statements) {
  sqlite3* handle = nullptr;
  REQUIRE(sqlite3_open(":memory:", &handle) == SQLITE_OK);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> database(handle, sqlite3_close);
  const int code =
      sqlite3_exec(handle, ("pragma page_size = 512;" + statements).c_str(), nullptr, nullptr, nullptr);
  CAPTURE(sqlite3_errmsg(handle));
  REQUIRE(code == SQLITE_OK);
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, void (*)(void*)> bytes(sqlite3_serialize(handle, "main", &size, 0),
                                                              sqlite3_free);
  return {reinterpret_cast<const char*>(bytes.get()), static_cast<std::size_t>(size)};
}

std::string string_row(int id, const std::string& text) {
  return fmt::format("insert into StringIds values ({}, '{}');", id, text);
}

// A kernel of so many microseconds, and its launch at a time of a thread of the process.
std::string kernel_rows(int name, std::int64_t launched, std::int64_t microseconds,
                        std::int64_t of_process = process) {
  return fmt::format(
      "insert into CUPTI_ACTIVITY_KIND_RUNTIME values ({0}, {0} + 5, {1} + 9, {0} + 1);"
      "insert into CUPTI_ACTIVITY_KIND_KERNEL values ({0} + 1000, {0} + 1000 + {2} * 1000, 0, {0} + 1, {1}, "
      "{3});",
      launched, of_process, microseconds, name);
}

std::string range_row(std::int64_t begin, std::int64_t end, const std::string& text,
                      std::int64_t of_process = process, int domain = 0,
                      const std::string& payload = "NULL") {
  return fmt::format("insert into NVTX_EVENTS values ({}, {}, 59, '{}', {} + 9, NULL, {}, {});", begin, end,
                     text, of_process, domain, payload);
}

std::string hex_of(std::uint64_t number, int width) {
  std::string text;
  for (int i = 0; i < width; ++i) text += fmt::format("{:02x}", number >> (8 * i) & 0xff);
  return text;
}

// The bytes of a payload as nsys keeps them.
std::string payload_of(int schema, const std::string& fields) {
  return "x'" + hex_of(3, 8) + hex_of(static_cast<std::uint64_t>(schema), 8) + hex_of(fields.size() / 2, 8) +
         hex_of(32 + fields.size() / 2, 8) + fields + "'";
}

std::string communicator_rows(std::uint64_t id, int ranks, int seen) {
  std::string rows;
  for (int rank = 0; rank < seen; ++rank)
    rows += range_row(1, 2, "ncclCommInitRankConfig", process, 3,
                      payload_of(1, hex_of(id, 8) + hex_of(static_cast<std::uint64_t>(ranks), 4) +
                                        hex_of(static_cast<std::uint64_t>(rank), 4)));
  return rows;
}

std::string nccl_rows(const std::string& call, std::uint64_t communicator, std::uint64_t bytes,
                      std::int64_t at, std::int64_t microseconds) {
  return range_row(at, at + 100, call, process, 3,
                   payload_of(2, hex_of(communicator, 8) + hex_of(bytes, 8))) +
         kernel_rows(2, at + 10, microseconds);
}

Profile read_database(const std::string& rows) {
  return parse_profile(
      database_of(strings_table + kernel_table + other_tables +
                  string_row(1, "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64") +
                  string_row(2, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL") +
                  string_row(3, "sm80_xmma_gemm_f32f32_f32f32_f32_nn") +
                  string_row(4,
                             "void at::native::vectorized_elementwise_kernel<4, "
                             "at::native::CUDAFunctor_add<c10::BFloat16>>") +
                  string_row(5,
                             "void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctor_add"
                             "<float>, at::native::memory::LoadWithCast<2>>") +
                  rows),
      "step.sqlite", gpus_a_node);
}

const std::string mm_text =
    "aten::mm, seq = 4, op_id = 12, sizes = [[4096, 1024], [1024, 512]], input_op_ids = [[1, 0]]";

TEST_CASE(
    "nsys: a product has the sizes that emit_nvtx marked, the type of its kernel, and the median time") {
  const Profile profile =
      read_database(range_row(0, 9000, "aten::linear, op_id = 11, sizes = [[4096, 1024], [512, 1024], []]") +
                    range_row(100, 200, mm_text) + kernel_rows(1, 110, 100) + range_row(300, 400, mm_text) +
                    kernel_rows(1, 310, 300) + kernel_rows(1, 320, 20) + range_row(500, 600, mm_text) +
                    kernel_rows(1, 510, 140));
  tests::check_product_of_three_times(profile);
  CHECK(profile.samples.device == "NVIDIA H100 80GB HBM3");
  CHECK(profile.samples.environment == "GPU clock 1980 MHz");
}

TEST_CASE("nsys: processes count their launches each for itself") {
  constexpr std::int64_t other = std::int64_t{78} << 24;
  const Profile profile =
      read_database(range_row(100, 200, mm_text) + kernel_rows(1, 110, 100) +
                    range_row(100, 200, "aten::mm, sizes = [[256, 256], [256, 256]]", other) +
                    kernel_rows(1, 110, 7, other));
  REQUIRE(profile.samples.samples.size() == 2);
  CHECK(profile.samples.samples[0].product.rows == 4096);
  CHECK(profile.samples.samples[0].median.count() == doctest::Approx(100e-6));
  CHECK(profile.samples.samples[1].product.rows == 256);
  CHECK(profile.samples.samples[1].median.count() == doctest::Approx(7e-6));
}

TEST_CASE("nsys: the same step is the same samples as in a trace of PyTorch's profiler") {
  const Profile exported = read_database(range_row(100, 200, mm_text) + kernel_rows(1, 110, 100));
  const Profile traced = parse_profile(
      R"({"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}], "traceEvents": [
      {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 10, "dur": 20,
       "args": {"Input Dims": [[4096, 1024], [1024, 512]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}},
      {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": 12, "dur": 3,
       "args": {"correlation": 7}},
      {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 40, "dur": 100,
       "args": {"correlation": 7, "device": 0}}]})",
      "step.json", gpus_a_node);
  CHECK(exported.samples.samples == traced.samples.samples);
  CHECK(exported.parts == traced.parts);
}

TEST_CASE(
    "nsys: calls of NCCL tell their sizes, and communicators all of whose ranks came up here lie in a node") {
  const Profile profile = read_database(communicator_rows(0xabc, 8, 8) + communicator_rows(0xdef, 16, 8) +
                                        nccl_rows("ncclAllReduce", 0xabc, 1 << 20, 100, 90) +
                                        nccl_rows("ncclAllReduce", 0xabc, 1 << 20, 300, 60) +
                                        nccl_rows("ncclAllGather", 0xabc, 1 << 20, 500, 40) +
                                        nccl_rows("ncclReduceScatter", 0xdef, 1 << 20, 700, 30) +
                                        nccl_rows("ncclAllGather", 0x123, 1 << 20, 900, 20));
  REQUIRE(profile.samples.samples.size() == 2);
  const Sample& reduced = profile.samples.samples[0];
  CHECK(reduced.kind == SampleKind::all_reduce);
  CHECK(reduced.bytes == 1_MiB);
  CHECK(reduced.ranks == 8);
  CHECK(reduced.nodes == 1);
  CHECK(reduced.median.count() == doctest::Approx(60e-6));  // the shortest: the other waited
  CHECK(profile.samples.samples[1].kind == SampleKind::all_gather);
  CHECK(profile.samples.samples[1].bytes == 8_MiB);  // of which each rank sends an eighth
  REQUIRE(profile.parts.size() == 3);
  CHECK(profile.parts[1].problem == "over ranks that are not recorded");
  CHECK(profile.parts[2].problem == "whose size or number of ranks is not recorded");
}

TEST_CASE("nsys: copies and elementwise kernels move bytes, where types are told and nothing is cast") {
  const std::string add = "aten::add, op_id = 3, sizes = [[1024, 1024], [1024, 1024], []]";
  const Profile profile = read_database(
      "insert into CUPTI_ACTIVITY_KIND_MEMCPY values (0, 50000, 1048576, 8), (0, 50000, 1048576, 1);" +
      range_row(100, 200, add) + kernel_rows(4, 110, 9) + range_row(300, 400, add) + kernel_rows(5, 310, 9) +
      range_row(500, 600, mm_text) + kernel_rows(3, 510, 9));
  REQUIRE(profile.samples.samples.size() == 2);
  CHECK(profile.samples.samples[0].bytes == 2_MiB);
  CHECK(profile.samples.samples[1].bytes.count() == 3 * 2 * 1024 * 1024);
  REQUIRE(profile.parts.size() == 3);
  CHECK(profile.parts[1].problem == "in fp32 or TF32, which no rate is fitted to");
  CHECK(profile.parts[2].problem == "whose types neither the profiler nor the names of kernels tell");
}

TEST_CASE("nsys: a step without ranges of PyTorch is told how to record them") {
  const Profile profile = read_database(kernel_rows(1, 110, 100));
  CHECK(profile.samples.samples.empty());
  const auto problem = problem_of(profile);
  REQUIRE(problem.has_value());
  CHECK(contains(problem->rule, "1 matrix products whose shapes are not recorded"));
  CHECK(contains(problem->rule, "record_shapes=True"));
}

TEST_CASE("nsys: broken databases are told what is wrong with them") {
  const auto message = [](const std::string& bytes) {
    return message_of([&] { return parse_profile(bytes, "step.sqlite", gpus_a_node); });
  };
  CHECK(contains(message(database_of("create table a (b);")), "no table StringIds"));
  CHECK(contains(message(database_of(strings_table)), "holds no kernels of a GPU: record with"));
  CHECK(
      contains(message(database_of(strings_table + kernel_table)), "holds no kernels of a GPU: record with"));
  CHECK(contains(
      message(database_of(strings_table + "create table CUPTI_ACTIVITY_KIND_KERNEL (start, \"end\");")),
      "no column correlationId in its table CUPTI_ACTIVITY_KIND_KERNEL"));
  // A view that never ends is no table, and a column that is computed no column.
  CHECK(contains(message(database_of(
                     strings_table +
                     "create view CUPTI_ACTIVITY_KIND_KERNEL as with recursive n(i) as (select 1 union all "
                     "select i + 1 from n) select i from n;")),
                 "holds no kernels of a GPU: record with"));
  CHECK(contains(message(database_of(strings_table +
                                     "create table CUPTI_ACTIVITY_KIND_KERNEL (start, \"end\" as (start), "
                                     "correlationId, globalPid, demangledName);")),
                 "no column end"));
  CHECK(contains(message_of([] { return read_profile("step.nsys-rep", gpus_a_node); }),
                 "nsys export --type sqlite"));
}

TEST_CASE(
    "nsys: a database that ends early or is damaged anywhere is answered by samples or a named mistake") {
  std::ifstream stream(tests::source_dir() / "tests/fuzz/corpus/profile/step.sqlite", std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(stream), {}};
  REQUIRE(parse_profile(whole, "step.sqlite", gpus_a_node).samples.samples.size() == 3);
  const auto answered = [](const std::string& bytes) {
    try {
      parse_profile(bytes, "step.sqlite", gpus_a_node);
    } catch (const InputError& error) {
      CHECK(!error.problems().empty());
    }
  };
  CHECK(contains(message_of([&] {
                   return parse_profile(whole.substr(0, whole.size() / 2), "step.sqlite", gpus_a_node);
                 }),
                 "damaged or cut off"));
  for (std::size_t end = 16; end < whole.size(); end += 61) answered(whole.substr(0, end));
  for (std::size_t at = 16; at < whole.size(); at += 7) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
    answered(damaged);
  }
}

TEST_CASE("nsys: what ranges say is read, and what they do not say is nothing") {
  CHECK(nvtx_text("aten::mm, seq = 4, sizes = [[2, 3], [3]]").name == "aten::mm");
  CHECK(nvtx_text("aten::mm, seq = 4, sizes = [[2, 3], [3]], input_op_ids = [[5, 0]]").sizes ==
        "[[2, 3], [3]]");
  CHECK(nvtx_text("forward").sizes.empty());
  CHECK(sizes_in("[[2, 3], [], [4]]") == std::vector<std::vector<std::int64_t>>{{2, 3}, {}, {4}});
  for (const std::string_view broken :
       {"[[2, 3]", "[[2], x]", "[[99999999999999999999]]", "[[-1]]", "[[[2]]]"})
    CHECK(sizes_in(broken).empty());
  CHECK(type_in_kernel_name("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTT") == "c10::BFloat16");
  CHECK(type_in_kernel_name("nvjet_hsh_256x128_64x4_2x1_v_bz_TNN") == "c10::Half");
  CHECK(type_in_kernel_name("sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n") == "c10::Float8_e4m3fn");
  CHECK(type_in_kernel_name("ampere_fp16_s16816gemm_fp16_128x128_ldg8_relu_f2f_stages_64x3_nn") ==
        "c10::Half");
  CHECK(type_in_kernel_name("ampere_sgemm_128x64_nn") == "float");
  CHECK(type_in_kernel_name("splitKreduce_kernel").empty());
  CHECK(!nccl_payload("short", {}).communicator.has_value());
}

}  // namespace
}  // namespace headroom
