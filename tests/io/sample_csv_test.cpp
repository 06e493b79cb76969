// Tables of measured kernels as CSV: columns by name, several kinds in one file, units of times, notes, and what is wrong with them.
#include <doctest/doctest.h>

#include "headroom/io/samples_file.hpp"
#include "messages.hpp"

namespace headroom {
namespace {

std::string mistake(const std::string& text) {
  return message_of([&] { parse_samples(text, "s.csv"); });
}
bool begins(const std::string& text, const std::string& start) { return text.starts_with(start); }

}  // namespace

TEST_CASE("samples: a table of several kinds of kernels has a column that names them") {
  const SampleSet set = parse_samples(
      "kind,m,n,k,batch,result_bytes,query_heads,head_size,sequence,pass,gpus,nodes,bytes,dtype,"
      "microseconds\n"
      "gemm,128,256,512,4,8,,,,,,,,bf16,20\n"
      "attention,,,,2,,32,128,4096,backward,,,,,900\n"
      "all_reduce,,,,,,,,,,16,2,1048576,,55.5\n"
      "alltoall,,,,,,,,,,8,,1024,,7\n",
      "s.csv");
  REQUIRE(set.samples.size() == 4);
  const Sample& gemm = set.samples[0];
  CHECK(gemm.product ==
        Gemm{.batch = 4, .rows = 128, .columns = 256, .inner = 512, .result_bytes = 8, .dtype = Dtype::bf16});
  CHECK(gemm.median.count() == doctest::Approx(20e-6));
  CHECK(set.samples[1].kind == SampleKind::attention);
  CHECK(set.samples[1].attention.batch == 2);
  CHECK(set.samples[1].attention_pass == AttentionPass::backward);
  CHECK(set.samples[2].kind == SampleKind::all_reduce);
  CHECK(set.samples[2].nodes == 2);
  CHECK(set.samples[2].bytes == Bytes(1048576));
  CHECK(set.samples[3].kind == SampleKind::all_to_all);
  CHECK(set.samples[3].nodes == 1);
  CHECK(set.samples[3].where == "line 5");
}

TEST_CASE("samples: times in three units, and columns that are notes") {
  const auto seconds = [](const std::string& column, const std::string& time) {
    return parse_samples("#gpu,m,n,k," + column + ",#\nH100,1,2,3," + time + ",x\n", "s.csv")
        .samples[0]
        .median.count();
  };
  CHECK(seconds("milliseconds", "2.5") == doctest::Approx(2.5e-3));
  CHECK(seconds("microseconds", "2.5") == doctest::Approx(2.5e-6));
  CHECK(seconds("seconds", "2.5") == doctest::Approx(2.5));
}

TEST_CASE("samples: what a column may leave out is the default, an empty cell too") {
  const SampleSet set =
      parse_samples("m,n,k,dtype,load,milliseconds\n1,2,3,,,4\n1,2,3,fp16,sustained,4\n", "s.csv");
  CHECK(set.samples[0].dtype == Dtype::half);
  CHECK(set.samples[0].load == Load::burst);
  CHECK(set.samples[1].load == Load::sustained);
}

TEST_CASE("samples: wrong columns and cells are named by line and column") {
  CHECK(mistake("m,n,k,watts,milliseconds\n1,2,3,4,5\n") ==
        "s.csv:1: column 'watts' is unknown of GEMMs: write #watts to pass it over");
  CHECK(mistake("kind,m,n,k,watts,milliseconds\ngemm,1,2,3,4,5\n") ==
        "s.csv:1: column 'watts' is unknown of samples: write #watts to pass it over");
  CHECK(mistake("m,n,k,,milliseconds\n1,2,3,4,5\n") == "s.csv:1: column 4 has no name");
  CHECK(mistake("m,n,k,seconds,milliseconds\n1,2,3,4,5\n") ==
        "s.csv:1: must have one column of times: milliseconds, microseconds or seconds");
  CHECK(begins(mistake("m,n,k,dtype\n1,2,3,bf16\n"), "s.csv:1: must be the header \"m,n,k,milliseconds\", "));
  CHECK(begins(mistake("kind,m,n,k\ngemm,1,2,3\n"), "s.csv:1: must be the header"));
  const std::string mixed = "kind,m,n,k,gpus,bytes,milliseconds\n";
  CHECK(
      mistake(mixed + "gemv,1,2,3,,,4\n") ==
      "s.csv:2: kind must be gemm, attention, experts, all_reduce, all_gather, reduce_scatter, all_to_all or "
      "send_receive (found 'gemv')");
  CHECK(mistake(mixed + "gemm,1,,3,,,4\n") == "s.csv:2: n is missing, which GEMMs need");
  CHECK(mistake(mixed + "attention,,,,,,4\n") == "s.csv:2: query_heads is missing, which attention needs");
  CHECK(mistake(mixed + "all_reduce,,,,8,,4\n") ==
        "s.csv:2: message_bytes is missing, which collectives need");
  CHECK(mistake(mixed + "gemm,1,2,3,8,,4\n") == "s.csv:2: gpus must be empty: it is no column of GEMMs");
  CHECK(mistake(mixed + "gemm,1,2,3,,,\n") == "s.csv:2: milliseconds must be a number above zero (found '')");
  CHECK(mistake("collective,gpus,nodes,bytes,milliseconds\nall_reduce,8,3,1024,1\n") ==
        "s.csv:2: nodes must divide gpus (found 3 and 8)");
  CHECK(mistake("m,n,k,result_bytes,milliseconds\n1,2,3,17,4\n") ==
        "s.csv:2: result_bytes must be an integer from 1 to 16 (found '17')");
  CHECK(mistake("m,n,k,milliseconds\n99999999999999999999,2,3,4\n") ==
        "s.csv:2: m must be an integer from 1 to 268435456 (found '99999999999999999999')");
}

}  // namespace headroom
