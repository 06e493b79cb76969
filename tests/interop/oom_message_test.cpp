// Messages of runs that went out of memory, and what they tell.
#include "headroom/interop/oom_message.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/answer/oom.hpp"

namespace headroom {
namespace {

constexpr Bytes operator""_GiB(long double number) { return Bytes(static_cast<double>(number) * 0x1p30); }

std::string recent(const char* asked, const char* free, const char* process, const char* allocated,
                   const char* unused, const std::string& more = "") {
  return std::string("step 3\n[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ") +
         asked + ". GPU 1 has a total capacity of 79.10 GiB of which " + free +
         " is free. Including non-PyTorch memory, this process has " + process + " memory in use. " + more +
         "Of the allocated memory " + allocated + " is allocated by PyTorch, and " + unused +
         " is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
         "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.\n";
}

OomReply told(const std::string& text) {
  const std::optional<OomMessage> message = read_oom_message(text);
  REQUIRE(message.has_value());
  return diagnosed(*message);
}

}  // namespace

TEST_CASE("out of memory: a recent message is read whole") {
  const OomReply reply = told(recent("2.00 GiB", "512.00 MiB", "78.50 GiB", "70.25 GiB", "1.00 GiB"));
  const OomMessage& message = reply.message;
  CHECK(message.line == 2);
  CHECK(message.gpu == 1);
  CHECK(message.asked == 2.0_GiB);
  CHECK(message.capacity->count() == doctest::Approx(79.1 * 0x1p30));
  CHECK(message.free == 0.5_GiB);
  CHECK(message.allocated == 70.25_GiB);
  CHECK(message.unused == 1.0_GiB);
  CHECK(message.expandable);
  CHECK(reply.cause == OomCause::excess);
  CHECK(reply.missing == 0.5_GiB);
  CHECK(reply.non_torch->count() == doctest::Approx((78.5 - 71.25) * 0x1p30));
}

TEST_CASE("out of memory: causes are told apart") {
  const OomReply pieces = told(recent("2.00 GiB", "100.00 MiB", "78.50 GiB", "66.25 GiB", "9.00 GiB"));
  CHECK(pieces.cause == OomCause::fragmentation);
  CHECK(pieces.remedies.front() == "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  CHECK_FALSE(pieces.missing.has_value());
  CHECK(told(recent("2.00 GiB", "0 bytes", "40.00 GiB", "39.00 GiB", "0 bytes")).cause ==
        OomCause::other_processes);
  CHECK(told(recent("2.00 GiB", "30.00 GiB", "40.00 GiB", "39.00 GiB", "0 bytes", "40.00 GiB allowed; "))
            .cause == OomCause::limit);
  const OomReply pools = told(recent("2.00 GiB", "0 bytes", "79.00 GiB",
                                     "70.00 GiB, with 4.00 GiB allocated in private pools (e.g., "
                                     "CUDA Graphs),",
                                     "100.00 MiB"));
  CHECK(pools.message.pools == 4.0_GiB);
  CHECK(pools.remedies.size() == 2);
}

TEST_CASE("out of memory: messages of other releases and programs") {
  const OomReply old = told(
      "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.78 GiB total capacity; 14.00 "
      "GiB "
      "already allocated; 10.00 MiB free; 15.00 GiB reserved in total by PyTorch) If reserved memory is >> "
      "allocated memory try setting max_split_size_mb to avoid fragmentation.");
  CHECK(old.message.unused == 1.0_GiB);
  CHECK(old.cause == OomCause::fragmentation);
  CHECK(old.remedies.front().find("max_split_size_mb") != std::string::npos);
  const OomReply misspelt = told(
      "HIP out of memory. Tried to allocate 1.00 GiB. GPU 3 has a total capacty of 64.00 GiB of which 0 "
      "bytes "
      "is free. Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use.");
  CHECK(misspelt.message.hip);
  CHECK(misspelt.message.capacity == 64.0_GiB);
  CHECK_FALSE(misspelt.message.process.has_value());
  CHECK(told("NCCL WARN Cuda failure 'out of memory'").cause == OomCause::outside);
  CHECK(told("a\nCUBLAS_STATUS_ALLOC_FAILED when calling").message.line == 2);
  CHECK(told("slurmstepd: error: Detected 1 oom_kill event in StepId=3").cause == OomCause::host);
  CHECK(told("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1024 bytes.").message.asked ==
        Bytes(1024));
  std::string newer = recent("2.00 GiB", "100.00 MiB", "78.50 GiB", "66.25 GiB", "9.00 GiB");
  newer.erase(newer.find("CUDA_ALLOC_CONF"), 5);  // PyTorch 2.10 advises PYTORCH_ALLOC_CONF
  CHECK(told(newer).message.expandable);
  CHECK(told(newer).cause == OomCause::fragmentation);
  CHECK_FALSE(read_oom_message("all is well").has_value());
  CHECK_FALSE(read_oom_message("").has_value());
}

TEST_CASE("out of memory: a long log is read in pieces, and lines and messages are counted through them") {
  const std::string message = recent("2.00 GiB", "512.00 MiB", "78.50 GiB", "70.25 GiB", "1.00 GiB");
  constexpr std::size_t piece = std::size_t{1} << 22U;
  const std::string file = (std::filesystem::temp_directory_path() / "headroom_oom_test.log").string();
  // The first message lies across the end of a piece, wherever that cuts it.
  for (const std::size_t before : {piece - 4096, piece - 100, piece - 60, piece - 1, 2 * piece - 10}) {
    std::string log;
    while (log.size() + 64 < before) log += std::string(63, 'x') + "\n";
    log += message + std::string(piece, 'y') + "\n" + message;
    std::ofstream(file, std::ios::binary) << log;
    const std::optional<OomMessage> read = read_oom_log(file);
    std::filesystem::remove(file);
    REQUIRE(read.has_value());
    CHECK(read == read_oom_message(log));
    CHECK(read->messages == 2);
    CHECK(read->unused == 1.0_GiB);
  }
  CHECK(read_oom_message("CUBLAS_STATUS_ALLOC_FAILED\n" + message)->source == OutOf::torch);
  CHECK(read_oom_message("oom-kill\nCUDA error: out of memory\n")->source == OutOf::host);
  CHECK_FALSE(read_oom_message("CUDA out of memory. Tried to allocate nan GiB")->asked.has_value());
}

TEST_CASE("out of memory: cut and garbled messages are no danger") {
  const std::string whole = recent("2.00 GiB", "512.00 MiB", "78.50 GiB", "70.25 GiB", "1.00 GiB");
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    if (const auto message = read_oom_message(whole.substr(0, length))) diagnosed(*message);
  }
  CHECK(rc::check("any numbers, and whatever follows", [](double asked, const std::string& junk) {
    const auto message =
        read_oom_message("CUDA out of memory. Tried to allocate " + std::to_string(asked) + " GiB" + junk);
    RC_ASSERT(message.has_value());
    RC_ASSERT(!diagnosed(*message).remedies.empty());
  }));
}

}  // namespace headroom
