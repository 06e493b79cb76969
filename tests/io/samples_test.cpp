#include <doctest/doctest.h>

#include "headroom/io/samples_file.hpp"
#include "messages.hpp"

namespace headroom {
namespace {

const char* const json =
    R"({"format": 1, "device": "NVIDIA H100 80GB HBM3", "driver": "580.95", "cuda": "13.0",
 "samples": [
  {"kind": "matrix_product", "m": 4096, "n": 1024, "k": 2048, "dtype": "half", "load": "sustained",
   "bytes": 29360128, "flops": 17179869184, "median_seconds": 2.5e-5, "spread": 0.01},
  {"kind": "all_reduce", "ranks": 8, "bytes": 67108864, "median_seconds": 0.000412},
  {"kind": "streaming", "label": "softmax", "bytes": 1048576, "median_seconds": 4e-6},
  {"kind": "empty_kernel", "median_seconds": 2e-6}]})";

const char* const nccl =
    R"(# nThread 1 nGpus 2 minBytes 1024 maxBytes 2048 step: 2(factor) warmup iters: 5 iters: 20
# Collective test starting: all_reduce_perf
# Using devices
#  Rank  0 Group  0 Pid  77 on   node1 device  0 [0x07] NVIDIA A100-SXM4-80GB
#  Rank  1 Group  0 Pid  77 on   node1 device  1 [0x0f] NVIDIA A100-SXM4-80GB
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        1024           256     float     sum      -1    33.95    0.03    0.03      0    31.36    0.03    0.03      0
node1:77:77 [0] NCCL INFO comm 0x55 rank 0 nranks 2 cudaDev 0 busId 7 - Init COMPLETE, more words of it here
        2048           512     float     sum      -1    34.50    0.06    0.06      0    33.14    0.06    0.06    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.05
)";

std::string samples_mistake(const std::string& text, const std::string& file = "s.csv") {
  return message_of([&] { return parse_samples(text, file); });
}
std::string samples_json_mistake(const std::string& part, const std::string& changed) {
  return samples_mistake(with(json, part, changed), "s.json");
}
std::string nccl_mistake(const std::string& part, const std::string& changed) {
  return samples_mistake(with(nccl, part, changed), "log.txt");
}

}  // namespace

TEST_CASE("samples: JSON as headroom-measure writes it") {
  const SampleSet set = parse_samples(json, "s.json");
  CHECK(set.device == "NVIDIA H100 80GB HBM3");
  CHECK(set.environment == "driver 580.95, CUDA 13.0");
  REQUIRE(set.samples.size() == 4);
  CHECK(set.samples[0] == Sample{.kind = SampleKind::matrix_product,
                                 .product = {.rows = 4096, .columns = 1024, .inner = 2048},
                                 .bytes = Bytes(29360128),
                                 .load = Load::sustained,
                                 .median = Seconds(2.5e-5),
                                 .spread = 0.01,
                                 .where = "/samples/0"});
  CHECK(set.samples[1].ranks == 8);
  CHECK(set.samples[2].label == "softmax");
}

TEST_CASE("samples: CSV of products and of collectives, with either line end") {
  const SampleSet products = parse_samples("m,n,k,milliseconds\n128,256,512,0.004\r\n\n", "p.csv");
  REQUIRE(products.samples.size() == 1);
  CHECK(products.samples[0].product == Gemm{.rows = 128, .columns = 256, .inner = 512});
  CHECK(products.samples[0].median == Seconds(4e-6));
  CHECK(products.samples[0].where == "line 2");
  for (const char* header : {"collective,gpus,message_bytes,milliseconds", "kind,gpus,bytes,milliseconds"}) {
    const SampleSet set =
        parse_samples(std::string(header) + "\nalltoall,4,1024,0.5\nall_gather,2,512,0.25\n", "c.csv");
    REQUIRE(set.samples.size() == 2);
    CHECK(set.samples[0].kind == SampleKind::all_to_all);
    CHECK(set.samples[1].bytes == Bytes(512));
  }
}

TEST_CASE("samples: CSV of products names its columns, in any order, with dtype, load and quantizes") {
  const SampleSet set = parse_samples(
      "dtype,m,n,k,milliseconds,load,quantizes\nfp8_blockwise,256,512,1024,0.02,sustained,1\nbf16,1,2,3,4,"
      "burst,0\n",
      "s.csv");
  REQUIRE(set.samples.size() == 2);
  const Sample& first = set.samples[0];
  CHECK(first.dtype == Dtype::fp8_blockwise);
  CHECK(first.product.dtype == Dtype::fp8_blockwise);
  CHECK(first.quantizes);
  CHECK(first.load == Load::sustained);
  CHECK(first.product.columns == 512);
  CHECK(set.samples[1].dtype == Dtype::bf16);
  CHECK_FALSE(set.samples[1].quantizes);
  CHECK(parse_samples("milliseconds,k,n,m\n1,2,3,4\n", "s.csv").samples[0].product.rows == 4);
  CHECK(samples_mistake("dtype,m,n,k,milliseconds\nint64,1,2,3,4\n") ==
        "s.csv:2: dtype must be one of half, fp32, bf16, fp16, fp8, fp4, fp8_blockwise, mxfp8, nvfp4 (found "
        "'int64')");
  CHECK(samples_mistake("m,n,k,milliseconds,quantizes\n1,2,3,4,1\n") ==
        "s.csv:2: quantizes is of dtypes that have rates of their own");
  CHECK(samples_mistake("m,n,k,milliseconds,m\n1,2,3,4,5\n") == "s.csv:1: column 'm' stands twice");
}

TEST_CASE("samples: what nccl-tests print") {
  const SampleSet set = parse_samples(nccl, "log.txt");
  CHECK(set.device == "NVIDIA A100-SXM4-80GB");
  REQUIRE(set.samples.size() == 2);
  CHECK(set.samples[0].kind == SampleKind::all_reduce);
  CHECK(set.samples[0].ranks == 2);
  CHECK(set.samples[0].bytes == Bytes(1024));
  CHECK(set.samples[0].median == Seconds(33.95 / 1e6));
  CHECK(set.samples[1].where == "line 12");
  const std::string older = with(nccl, "# Collective test starting: all_reduce_perf\n", "");
  CHECK(parse_samples(older, "logs/all_gather.txt").samples[0].kind == SampleKind::all_gather);
}

TEST_CASE("samples: nccl-tests, wrong") {
  CHECK(contains(nccl_mistake("# Collective test starting: all_reduce_perf\n", ""),
                 "log.txt:9: of which collective?"));
  CHECK(
      nccl_mistake("starting: all_reduce_perf", "starting: broadcast_perf")
          .starts_with("log.txt:10: broadcast_perf is not modelled: all_reduce, all_gather, reduce_scatter"));
  const std::string whole = nccl;
  for (const char* last : {"2048           512     float", "34.50", "33.14    0.06"}) {
    const std::string cut = whole.substr(0, whole.rfind(last) + std::string(last).size());
    CHECK(contains(samples_mistake(cut, "log.txt"), "log.txt:12: is cut off after "));
  }
  CHECK(nccl_mistake("33.95", "0.00") ==
        "log.txt:10: the out-of-place time must be above zero (found '0.00')");
  CHECK(nccl_mistake("0.03      0    31.36", "0.03      7    31.36") ==
        "log.txt:10: has 7 wrong results: its time means nothing");
  CHECK(contains(nccl_mistake("1 Group  0 Pid  77 on   node1", "1 Group  0 Pid  77 on   node2"),
                 "ran over 2 nodes; rates are fitted within one"));
  CHECK(
      contains(nccl_mistake("[0x0f] NVIDIA A100-SXM4-80GB", "[0x0f] NVIDIA H200"), "is another device than"));
}

TEST_CASE("samples: CSV, wrong") {
  const std::string header = "m,n,k,milliseconds\n";
  CHECK(samples_mistake("") == "s.csv: is empty");
  CHECK(samples_mistake(header) == "s.csv: holds no samples");
  CHECK(samples_mistake("hello\n").starts_with("s.csv: is no samples file"));
  CHECK(samples_mistake("m,n,milliseconds\n")
            .starts_with("s.csv:1: must be the header \"m,n,k,milliseconds\", "));
  for (const char* time : {"0", "-1", "nan", "inf", "x", "", "1e999"}) {
    CAPTURE(time);
    CHECK(samples_mistake(header + "1,2,3," + time) ==
          std::string("s.csv:2: milliseconds must be a number above zero (found '") + time + "')");
  }
  CHECK(samples_mistake(header + "0,2,3.5,1") ==
        "s.csv:2: m must be an integer from 1 to 268435456 (found '0')\n"
        "s.csv:2: k must be an integer from 1 to 268435456 (found '3.5')");
  CHECK(samples_mistake(header + "1,2,3\n") == "s.csv:2: must have 4 cells, as the header has (found 3)");
  CHECK(contains(samples_mistake("kind,gpus,bytes,milliseconds\nbroadcast,8,1024,1"),
                 "unknown collective 'broadcast'"));
  CHECK(contains(samples_mistake("kind,gpus,bytes,milliseconds\nall_reduce,1,1024,1"),
                 "gpus must be an integer from 2"));
}

TEST_CASE("samples: whole layers, formats and nodes") {
  const std::string layer =
      R"({"kind": "transformer_layer", "label": "22B", "sequence": 2048, "micro_batch": 4, "hidden": 6144,
 "heads": 64, "tensor_parallel": 8, "recompute": "selective", "pass": "backward", "stored_bytes": 655360000,
 "peak_bytes": 755360000, "half_format": "fp16", "load": "sustained", "median_seconds": 0.003, "repeats": 20,
 "sm_clock_mhz": 1410, "least_sm_clock_mhz": 1275, "power_watts": 398.5, "temperature_celsius": 62})";
  const std::string reduce =
      R"({"kind": "all_reduce", "ranks": 16, "nodes": 2, "bytes": 4096, "median_seconds": 1e-4})";
  const auto file = [](const std::string& samples) {
    return R"({"format": 1, "device": "d", "samples": [)" + samples + "]}";
  };
  const SampleSet set = parse_samples(file(layer + ", " + reduce), "s.json");
  REQUIRE(set.samples.size() == 2);
  CHECK(set.samples[0] == Sample{.kind = SampleKind::transformer_layer,
                                 .label = "22B",
                                 .layer = {.sequence = 2048,
                                           .micro_batch = 4,
                                           .hidden = 6144,
                                           .heads = 64,
                                           .tensor_parallel = 8,
                                           .recompute = RecomputePolicy::selective,
                                           .pass = LayerPass::backward,
                                           .stored = 655360000_B,
                                           .peak = 755360000_B},
                                 .load = Load::sustained,
                                 .half_format = HalfFormat::fp16,
                                 .median = Seconds(0.003),
                                 .where = "/samples/0"});
  CHECK(set.samples[1].nodes == 2);
  const auto wrong = [&](const std::string& sample, const char* part, const char* changed) {
    return samples_mistake(file(with(sample, part, changed)), "s.json");
  };
  CHECK(wrong(layer, "\"pass\": \"backward\", ", "") ==
        "s.json: /samples/0/pass: is missing, which transformer_layer needs");
  CHECK(contains(wrong(layer, "\"stored_bytes\": 655360000,", ""), "/samples/0/stored_bytes: is missing"));
  CHECK(contains(wrong(layer, "fp16", "unnamed"), "/samples/0/half_format"));
  CHECK(contains(wrong(layer, "selective", "ops"), "/samples/0/recompute"));
  CHECK(
      contains(wrong(layer, "\"heads\"", "\"ranks\": 4, \"heads\""),
               "/samples/0/ranks: must be tensor_parallel in a layer with its collectives (found 4 and 8)"));
  CHECK(wrong(reduce, "\"nodes\": 2", "\"nodes\": 3") ==
        "s.json: /samples/0/nodes: must divide ranks (found 3 nodes and 16 ranks)");
  CHECK(
      contains(wrong(layer, "\"heads\"", "\"nodes\": 2, \"heads\""), "/samples/0/nodes: must divide ranks"));
}

TEST_CASE("samples: JSON, wrong") {
  CHECK(samples_json_mistake("\"median_seconds\": 4e-6", "\"median_seconds\": -4e-6") ==
        "s.json: /samples/2/median_seconds: must be a number above zero (found -4e-06)");
  CHECK(
      contains(samples_json_mistake("4e-6", "0"), "/samples/2/median_seconds: must be a number above zero"));
  CHECK(contains(samples_json_mistake("4e-6", "NaN"), "is not JSON: NaN and Infinity are not numbers there"));
  CHECK(samples_json_mistake("\"k\": 2048, ", "") ==
        "s.json: /samples/0/k: is missing, which matrix_product needs");
  CHECK(contains(samples_json_mistake("17179869184", "17179869185000"),
                 "/samples/0/flops: must be 2 m n k batch"));
  CHECK(samples_json_mistake("\"ranks\": 8, ", "") ==
        "s.json: /samples/1/ranks: is missing, which all_reduce needs");
  CHECK(contains(samples_json_mistake("\"kind\": \"streaming\"", "\"kind\": \"steaming\""),
                 "did you mean 'streaming'?"));
  CHECK(contains(samples_json_mistake("\"label\"", "\"lable\""), "unknown key (did you mean 'label'?)"));
  CHECK(contains(samples_json_mistake("\"device\": \"NVIDIA H100 80GB HBM3\", ", ""), "/device: is missing"));
  const std::string cut = std::string(json).substr(0, 200);
  CHECK(contains(samples_mistake(cut, "s.json"), "is cut off"));
  CHECK(samples_mistake(R"({"format": 1, "device": "d", "samples": []})", "s.json") ==
        "s.json: holds no samples");
  CHECK(samples_mistake(R"({"format": 1, "device": "d", "samples": 3})", "s.json") ==
        "s.json: /samples: must be a list");
}

TEST_CASE("a list is refused where it becomes too long, whatever follows") {
  std::string many = R"({"format": 1, "device": "d", "samples": [0)";
  for (std::size_t i = 0; i < 200'000; ++i) many += ",0";
  CHECK(samples_mistake(many + ", this is never read", "s.json") ==
        "s.json: /samples: must be a list of at most 200000");
}

TEST_CASE("a CSV without a line end may be cut inside its last number") {
  const std::string whole = "m,n,k,milliseconds\n1024,1024,1024,0.25\n1024,1024,2048,0.51\n";
  CHECK(parse_samples(whole, "s.csv").samples.size() == 2);
  CHECK(samples_mistake(whole.substr(0, whole.size() - 1), "s.csv") ==
        "s.csv:3: has no line end, so that it may be cut inside its last number: end it with one");
  CHECK(samples_mistake(whole.substr(0, whole.size() - 2), "s.csv") ==
        "s.csv:3: has no line end, so that it may be cut inside its last number: end it with one");
}

TEST_CASE("samples: blocks of experts, as CSV and as JSON") {
  const std::string header = "tokens,hidden,expert_feedforward,top_k,experts,";
  const SampleSet table = parse_samples(header +
                                            "expert_parallel,tensor_parallel,dtype,milliseconds\n"
                                            "4096,2048,768,8,128,16,2,fp8,0.5\n"
                                            "1024,4096,14336,2,8,1,1,half,2.5\n",
                                        "s.csv");
  REQUIRE(table.samples.size() == 2);
  CHECK(table.samples[0].kind == SampleKind::expert_block);
  CHECK(table.samples[0].expert_block == ExpertBlock{.tokens = 4096,
                                                     .hidden = 2048,
                                                     .feedforward = 768,
                                                     .top_k = 8,
                                                     .experts = 128,
                                                     .tensor_parallel = 2,
                                                     .expert_parallel = 16,
                                                     .dtype = Dtype::fp8});
  CHECK(table.samples[1].median == Seconds(2.5e-3));
  CHECK(shape_hash(table.samples[0]) != shape_hash(table.samples[1]));

  const SampleSet file = parse_samples(
      R"({"format": 1, "device": "H100", "samples": [{"kind": "expert_block", "tokens": 4096, "hidden": 2048,
          "expert_feedforward": 768, "top_k": 8, "experts": 128, "expert_parallel": 16, "median_seconds": 1e-3}]})",
      "s.json");
  CHECK(file.samples[0].expert_block.expert_parallel == 16);
  CHECK(file.samples[0].expert_block.tensor_parallel == 1);

  const auto refused = [&](const std::string& row) {
    return samples_mistake(header + "expert_parallel,tensor_parallel,dtype,milliseconds\n" + row + "\n",
                           "s.csv");
  };
  CHECK(refused("4096,2048,768,8,4,1,1,half,1") ==
        "s.csv:2: must have no more experts for a token (top_k) than experts");
  CHECK(refused("4096,2048,768,8,128,3,1,half,1") ==
        "s.csv:2: must have experts that expert_parallel divides");
  CHECK(refused("4096,2048,768,8,128,1,5,half,1") ==
        "s.csv:2: must have an expert_feedforward that tensor_parallel divides");
  CHECK(refused("4096,2048,768,8,128,1,1,fp32,1") ==
        "s.csv:2: must be of experts in half, fp8, fp8_blockwise, mxfp8 or nvfp4 (dtype)");
  CHECK(refused("268435456,268435456,268435456,8,128,1,1,half,1") ==
        "s.csv:2: must be of no more than 1e18 FLOPs");
  CHECK(samples_mistake(
            R"({"format": 1, "device": "H100", "samples": [{"kind": "expert_block", "tokens": 4096,
          "hidden": 2048, "top_k": 8, "experts": 128, "median_seconds": 1e-3}]})",
            "s.json") == "s.json: /samples/0/expert_feedforward: is missing, which expert_block needs");
  // What is there but breaks its rule has one problem, and nothing is computed from it.
  CHECK(samples_mistake(
            R"({"format": 1, "device": "H100", "samples": [{"kind": "expert_block", "tokens": 4096,
            "hidden": 0, "expert_feedforward": 768, "top_k": 8, "experts": 128, "expert_parallel": 0,
            "median_seconds": 0.001}]})",
            "s.json") ==
        "s.json: /samples/0/hidden: must be an integer from 1 to 268435456 (found 0)\n"
        "s.json: /samples/0/expert_parallel: must be an integer from 1 to 268435456 (found 0)");
}

TEST_CASE("samples: attention, as CSV and as JSON") {
  const SampleSet table = parse_samples(
      "head_size,query_heads,kv_heads,batch,sequence,window,load,dtype,milliseconds,value_size,causal,pass\n"
      "128,32,8,2,4096,0,sustained,half,1.5,128,1,backward\n"
      "64,16,16,1,2048,128,burst,fp8,0.25,64,1,forward\n"
      "192,16,16,1,2048,0,burst,half,0.5,128,0,forward\n",
      "s.csv");
  REQUIRE(table.samples.size() == 3);
  const Sample& first = table.samples[0];
  CHECK(first.kind == SampleKind::attention);
  CHECK(first.attention == Attention{.batch = 2,
                                     .heads = 32,
                                     .kv_heads = 8,
                                     .queries = 4096,
                                     .keys = 4096,
                                     .head_size = 128,
                                     .value_size = 128});
  CHECK(first.attention_pass == AttentionPass::backward);
  CHECK(first.load == Load::sustained);
  CHECK(first.median == Seconds(1.5e-3));
  CHECK(table.samples[1].attention.mask == Mask::window);
  CHECK(table.samples[1].attention.keys == 2 * 128 - 128.0 * 128 / 2048);
  CHECK(table.samples[1].attention.dtype == Dtype::fp8);
  CHECK(table.samples[2].attention.mask == Mask::none);
  CHECK(table.samples[2].attention.value_size == 128);

  const SampleSet file = parse_samples(
      R"({"format": 1, "device": "H100", "samples": [{"kind": "attention", "query_heads": 32, "head_size": 128,
          "sequence": 4096, "median_seconds": 1e-3}]})",
      "s.json");
  CHECK(file.samples[0].attention.kv_heads == 32);
  CHECK(file.samples[0].attention.value_size == 128);
  CHECK(file.samples[0].attention.mask == Mask::causal);

  const std::string header = "query_heads,head_size,sequence,milliseconds,kv_heads,causal,window,dtype\n";
  CHECK(samples_mistake(header + "4,128,1024,1,8,1,0,half\n") ==
        "s.csv:2: must have no more kv_heads than query_heads");
  CHECK(samples_mistake(header + "4,128,1024,1,4,0,64,half\n") == "s.csv:2: window is of causal attention");
  CHECK(samples_mistake(header + "4,128,1024,1,4,1,0,nvfp4\n") ==
        "s.csv:2: must be of attention in half or fp8 (dtype)");
  CHECK(samples_mistake("query_heads,head_size,milliseconds\n").starts_with("s.csv:1: must be the header"));
  CHECK(
      samples_mistake(R"({"format": 1, "device": "H100", "samples": [{"kind": "attention", "query_heads": 32,
                            "median_seconds": 1e-3}]})")
          .find("/samples/0/head_size: is missing, which attention needs") != std::string::npos);
}

}  // namespace headroom
