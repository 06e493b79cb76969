#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/io/model_file.hpp"
#include "messages.hpp"

namespace headroom {
namespace {

const std::string gpt3 = R"({
  "format": 1, "source": "K22 table 3", "hidden": 12288, "feedforward": 49152, "heads": 96, "layers": 96,
  "vocabulary": 51200, "sequence": 2048
})";

std::string model_message(const std::string& text) {
  return message_of([&] { return parse_model(text, "models/gpt3.json"); });
}

// What is said when a member of gpt3 has another value.
std::string model_message_for(const std::string& member, const std::string& changed) {
  return model_message(with(gpt3, member, changed));
}

// What is said when gpt3 has one more member.
std::string message_adding(const std::string& member) {
  return model_message_for("\"format\": 1", "\"format\": 1, " + member);
}

// The file with two kinds in it.
std::string with_kinds(const std::string& layers, const std::string& kinds) {
  return model_message_for("\"layers\": 96", "\"layers\": " + layers + ", \"layer_kinds\": " + kinds);
}

TEST_CASE("model: layers as runs of kinds, and as a pattern") {
  const char* const text = R"({"format": 1, "source": "s", "hidden": 64, "feedforward": 256, "heads": 8,
    "layers": [{"kind": "dense", "count": 3}, {"pattern": ["wide", "wide", "dense"], "count": 5}],
    "layer_kinds": {"wide": {"feedforward": 512, "heads": 4, "kernels": {"attention": "flash"}}},
    "vocabulary": 100, "sequence": 32})";
  const Transformer model = parse_model(text, "two.json");
  CHECK(model.layers == 8);
  REQUIRE(model.layer_kinds.size() == 2);
  const LayerDescription& wide = model.layer_kinds[1];
  CHECK(wide.name == "wide");
  CHECK(wide.feedforward == 512);
  CHECK(wide.heads == 4);
  CHECK(wide.key_value_heads == 4);
  CHECK(wide.head_size == 8);
  CHECK(wide.architecture.kernels.attention == AttentionKernel::flash);
  CHECK(model.layer_kinds[0] == own_layer(model));
  CHECK(model.layer_runs == std::vector<LayerRun>{{0, 3}, {1, 2}, {0, 1}, {1, 2}});
  CHECK(parse_model(write_model(model), "two.json") == model);
}

TEST_CASE("model: what is wrong with runs and kinds of layers") {
  const std::string wide = R"({"wide": {"feedforward": 8192}})";
  CHECK(contains(with_kinds(R"([{"kind": "wid", "count": 96}])", wide),
                 "/layers/0/kind: 'wid' is no kind that layer_kinds describes (did you mean 'wide'?)"));
  CHECK(contains(with_kinds(R"([{"kind": "wide", "count": 0}])", wide),
                 "/layers/0/count: must be an integer from 1 to 100000 (found 0)"));
  CHECK(contains(with_kinds(R"([{"kind": "wide", "count": 99999}, {"kind": "dense", "count": 2}])", wide),
                 "/layers: must be an integer from 1 to 100000 (found 100001)"));
  CHECK(contains(with_kinds(R"([{"kind": "dense", "count": 96}])", wide),
                 "/layer_kinds/wide: no run of `layers` is of this kind"));
  CHECK(contains(with_kinds("96", wide), "/layer_kinds: needs `layers` as a list of runs"));
  CHECK(contains(with_kinds("[]", wide), "/layers: must have at least one run"));
  std::string runs;
  std::string kinds;
  for (int i = 0; i < 11; ++i) {
    const std::string name = '"' + std::string("kind_") + std::to_string(i) + '"';
    runs += (i == 0 ? "" : ", ") + std::string(R"({"count": 8, "kind": )") + name + '}';
    kinds += (i == 0 ? "" : ", ") + name + R"(: {"feedforward": )" + std::to_string(512 * (i + 1)) + '}';
  }
  CHECK(contains(with_kinds('[' + runs + ']', '{' + kinds + '}'),
                 "/layers: must be of at most 10 kinds, not 11"));
  CHECK(contains(with_kinds(R"([{"kind": "wide", "pattern": ["wide"], "count": 96}])", wide),
                 "/layers/0: must have a kind or a pattern of kinds, and not both"));
  CHECK(contains(with_kinds(R"([{"kind": "wide", "count": 96}])",
                            R"({"wide": {"feedforward": 1}, "wide": {"feedforward": 2}})"),
                 "/layer_kinds/wide: is given twice"));
  CHECK(contains(with_kinds(R"([{"kind": "wide", "count": 96}])", R"({"wide": {"key_value_heads": 7}})"),
                 "/layer_kinds/wide/heads: must be divisible by key_value_heads (96 % 7 = 5)"));
  CHECK(contains(
      with_kinds(R"([{"kind": "wide", "count": 96}])", R"({"wide": {"kernels": {"logits": "half"}}})"),
      "/layer_kinds/wide/kernels/logits: must be as in the model"));
  CHECK(contains(with_kinds(R"([{"kind": "wide", "count": 96}])", R"({"wide": {"feed": 7}})"),
                 "/layer_kinds/wide/feed: unknown key"));
  CHECK(contains(with_kinds(R"([{"kind": "a.b", "count": 96}])", R"({"a.b": {}})"),
                 "/layer_kinds/a.b: a kind's name must be of letters, digits, - and _"));
}

}  // namespace

TEST_CASE("model: what a file leaves out has its default") {
  const Transformer model = parse_model(gpt3, "models/gpt3.json");
  CHECK(model.name == "gpt3");
  CHECK(model.source == "K22 table 3");
  CHECK(model.hidden == 12288);
  CHECK(model.feedforward == 49152);
  CHECK(model.key_value_heads == 96);
  CHECK(model.head_size == 128);
  CHECK(model.vocabulary_multiple == 128);
  CHECK(model.max_positions == 2048);
  CHECK(model.architecture == Architecture());
}

TEST_CASE("model: qkv_bias follows linear_bias unless given") {
  const auto architecture = [](const std::string& members) {
    return parse_model(with(gpt3, "\"format\": 1", "\"format\": 1, " + members), "x.json").architecture;
  };
  CHECK_FALSE(architecture(R"("linear_bias": false)").qkv_bias);
  CHECK(architecture(R"("linear_bias": false, "qkv_bias": true)").qkv_bias);
}

TEST_CASE("model: a missing source does not load") {
  CHECK(model_message_for(R"("source": "K22 table 3", )", "") == "models/gpt3.json: /source: is missing");
}

TEST_CASE("model: an empty source does not load") {
  CHECK(model_message_for("K22 table 3", "  ") == "models/gpt3.json: /source: must not be empty");
}

TEST_CASE("model: a source of control characters") {
  CHECK(model_message_for("K22 table 3", "\\u001b[2J") ==
        "models/gpt3.json: /source: must be text without control characters (found \"\\x1b[2J\")");
}

TEST_CASE("model: a source that is a number") {
  CHECK(model_message_for("\"K22 table 3\"", "22") == "models/gpt3.json: /source: must be text (found 22)");
}

TEST_CASE("model: an endless source") {
  CHECK(contains(model_message_for("K22 table 3", std::string(5000, 'x')),
                 "/source: must be at most 4000 bytes of text"));
}

TEST_CASE("model: a missing key") {
  CHECK(model_message_for("\"layers\": 96,", "") == "models/gpt3.json: /layers: is missing");
}

TEST_CASE("model: an unknown key suggests the nearest") {
  CHECK(message_adding("\"head_sise\": 128") ==
        "models/gpt3.json: /head_sise: unknown key (did you mean 'head_size'?)");
}

TEST_CASE("model: an unknown key in kernels") {
  CHECK(message_adding("\"kernels\": {\"atention\": \"flash\"}") ==
        "models/gpt3.json: /kernels/atention: unknown key (did you mean 'attention'?)");
}

TEST_CASE("model: another format") {
  CHECK(model_message_for("\"format\": 1", "\"format\": 2") ==
        "models/gpt3.json: /format: must be 1, the only format known (found 2)");
}

TEST_CASE("model: a format that is only nearly 1") {
  CHECK(contains(model_message_for("\"format\": 1", "\"format\": 1.0"),
                 "/format: must be 1, the only format known"));
}

TEST_CASE("model: a size of zero") {
  CHECK(model_message_for("\"hidden\": 12288", "\"hidden\": 0") ==
        "models/gpt3.json: /hidden: must be an integer from 1 to 4194304 (found 0)");
}

TEST_CASE("model: a negative size") {
  CHECK(model_message_for("\"layers\": 96", "\"layers\": -96") ==
        "models/gpt3.json: /layers: must be an integer from 1 to 100000 (found -96)");
}

TEST_CASE("model: a fraction") {
  CHECK(model_message_for("\"layers\": 96", "\"layers\": 96.5") ==
        "models/gpt3.json: /layers: must be an integer from 1 to 100000 (found 96.5)");
}

TEST_CASE("model: 96.0 and 1e3 are not written as integers") {
  CHECK(contains(model_message_for("\"layers\": 96", "\"layers\": 96.0"),
                 "must be an integer from 1 to 100000 (found 96.0)"));
  CHECK(contains(model_message_for("\"layers\": 96", "\"layers\": 1e3"),
                 "must be an integer from 1 to 100000 (found 1000.0)"));
}

TEST_CASE("model: 1e30 is out of range") {
  CHECK(model_message_for("\"hidden\": 12288", "\"hidden\": 1e30") ==
        "models/gpt3.json: /hidden: must be an integer from 1 to 4194304 (found 1e+30)");
}

TEST_CASE("model: 2^63 does not become negative") {
  CHECK(model_message_for("\"hidden\": 12288", "\"hidden\": 9223372036854775808") ==
        "models/gpt3.json: /hidden: must be an integer from 1 to 4194304 (found 9223372036854775808)");
}

TEST_CASE("model: 2^64 + 12288 does not wrap around") {
  CHECK(contains(model_message_for("\"hidden\": 12288", "\"hidden\": 18446744073709563904"),
                 "/hidden: must be an integer"));
}

TEST_CASE("model: a size as text") {
  CHECK(contains(model_message_for("\"heads\": 96", "\"heads\": \"96\""),
                 "must be an integer from 1 to 65536 (found \"96\")"));
}

TEST_CASE("model: null is not absent") {
  CHECK(contains(message_adding("\"head_size\": null"),
                 "/head_size: must be an integer from 1 to 4194304 (found null)"));
}

TEST_CASE("model: a boolean as a number") {
  CHECK(message_adding("\"linear_bias\": 0") ==
        "models/gpt3.json: /linear_bias: must be true or false (found 0)");
}

TEST_CASE("model: a misspelt choice suggests the nearest") {
  CHECK(message_adding("\"activation\": \"swigloo\"") ==
        "models/gpt3.json: /activation: must be gelu or relu or squared_relu or swiglu or geglu "
        "(found \"swigloo\") (did you mean 'swiglu'?)");
}

TEST_CASE("model: a choice of the wrong type") {
  CHECK(contains(message_adding("\"positions\": true"),
                 "/positions: must be learned or rotary or alibi or none (found true)"));
}

TEST_CASE("model: kernels that are no object") {
  CHECK(message_adding("\"kernels\": \"flash\"") ==
        "models/gpt3.json: /kernels: must be an object (found \"flash\")");
}

TEST_CASE("model: a dtype that makes no sense there") {
  CHECK(message_adding("\"kernels\": {\"softmax_dtype\": \"int64\"}") ==
        "models/gpt3.json: /kernels/softmax_dtype: must be half or fp32 or bf16 or fp16 (found \"int64\")");
}

TEST_CASE("model: bf16 and fp16 are accepted where half is, and are written as they were given") {
  const Transformer model =
      parse_model(with(gpt3, "\"format\": 1",
                       "\"format\": 1, \"kernels\": {\"softmax_dtype\": \"bf16\", \"logits\": \"fp16\"}"),
                  "m.json");
  CHECK(model.architecture.kernels.softmax_dtype == Dtype::bf16);
  CHECK(model.architecture.kernels.logits == Dtype::fp16);
  CHECK(contains(write_model(model), "\"softmax_dtype\": \"bf16\""));
}

TEST_CASE("model: hidden must be divisible by heads") {
  CHECK(model_message_for("\"hidden\": 12288", "\"hidden\": 12289") ==
        "models/gpt3.json: /hidden: must be divisible by heads (12289 % 96 = 1), unless head_size is given");
  CHECK(model_message_for("\"hidden\": 12288", "\"hidden\": 12289, \"head_size\": 128").empty());
}

TEST_CASE("model: heads must be divisible by key_value_heads") {
  CHECK(message_adding("\"key_value_heads\": 7") ==
        "models/gpt3.json: /heads: must be divisible by key_value_heads (96 % 7 = 5)");
}

TEST_CASE("model: what groups of experts cannot be") {
  const auto message = [](const std::string& groups) {
    return message_adding(R"("experts": {"count": 16, "per_token": 6, )" + groups + "}");
  };
  const std::string at = "models/gpt3.json: /experts/";
  CHECK(message(R"("groups": 4, "groups_per_token": 2)").empty());
  CHECK(message(R"("groups": 4, "groups_per_token": 0)").empty());
  CHECK(message(R"("groups": 3)") == at + "groups: must divide the experts (16 % 3 = 1)");
  CHECK(message(R"("groups": 4, "groups_per_token": 5)") ==
        at + "groups_per_token: must be at most the groups (5 > 4)");
  CHECK(message(R"("groups_per_token": 2)") == at + "groups_per_token: must be at most the groups (2 > 1)");
  CHECK(message(R"("groups": 4, "groups_per_token": 1)") ==
        at + "per_token: must be at most the experts of the groups that a token goes to (6 > 4)");
}

TEST_CASE("model: rotary positions need an even head size") {
  CHECK(message_adding("\"head_size\": 127, \"positions\": \"rotary\"") ==
        "models/gpt3.json: /head_size: must be even for rotary positions (127)");
}

TEST_CASE("model: clamps need a gated activation, and a scale rotary positions") {
  CHECK(message_adding("\"clamped_activation\": true") ==
        "models/gpt3.json: /clamped_activation: needs a gated activation: swiglu or geglu");
  CHECK(message_adding("\"scaled_rotary\": true") ==
        "models/gpt3.json: /scaled_rotary: needs rotary positions");
  const std::string scaled = R"({"scaled": {"scaled_rotary": true}})";
  CHECK(contains(with_kinds(R"([{"kind": "scaled", "count": 96}])", scaled),
                 "/layer_kinds/scaled/scaled_rotary: needs rotary positions"));
}

TEST_CASE("model: learned positions must cover the sequence") {
  CHECK(message_adding("\"max_positions\": 1024") ==
        "models/gpt3.json: /max_positions: must be at least sequence (1024 < 2048) where positions are "
        "learned");
}

TEST_CASE("model: all problems of a file at once") {
  const std::string said =
      model_message(R"({"format": 1, "hidden": -1, "heads": 1.5, "layer": 3, "vocabulary": "v"})");
  for (const char* line :
       {"/source: is missing", "/hidden: must be an integer", "/feedforward: is missing",
        "/heads: must be an integer", "/layers: is missing", "/vocabulary: must be an integer",
        "/sequence: is missing", "/layer: unknown key (did you mean 'layers'?)"}) {
    CAPTURE(line);
    CHECK(contains(said, std::string("models/gpt3.json: ") + line));
  }
}

TEST_CASE("model: writing and reading give the same model back") {
  CHECK(rc::check("random models", [] {
    const auto size = [](std::int64_t most) { return *rc::gen::inRange<std::int64_t>(1, most + 1); };
    const auto any = [](auto& value) {
      const auto& choices = spellings<std::remove_reference_t<decltype(value)>>;
      value = choices[*rc::gen::inRange<std::size_t>(0, choices.size())].first;
    };
    Transformer model = read_model("llama-3-8b");
    model.key_value_heads = size(16);
    model.heads = model.key_value_heads * size(64);
    model.head_size = 2 * size(256);
    model.hidden = size(1 << 20);
    model.feedforward = size(1 << 22);
    model.layers = size(100'000);
    model.vocabulary = size(1 << 28);
    model.vocabulary_multiple = size(1024);
    model.sequence = size(1 << 20);
    model.max_positions = model.sequence + size(100);
    Architecture& architecture = model.architecture;
    any(architecture.activation);
    any(architecture.normalization);
    any(architecture.positions);
    for (bool* flag : {&architecture.linear_bias, &architecture.qkv_bias, &architecture.hidden_dropout,
                       &architecture.attention_dropout, &architecture.tied_embeddings,
                       &architecture.kernels.weight_copies}) {
      *flag = *rc::gen::arbitrary<bool>();
    }
    any(architecture.kernels.attention);
    any(architecture.kernels.softmax);
    any(architecture.kernels.activation.emplace());
    any(architecture.kernels.normalization.emplace());
    any(architecture.kernels.rotary.emplace());
    any(architecture.kernels.clamp.emplace());
    any(architecture.kernels.expert_bias.emplace());
    architecture.clamped_activation = is_gated(architecture.activation) && *rc::gen::arbitrary<bool>();
    architecture.scaled_rotary = architecture.positions == Positions::rotary && *rc::gen::arbitrary<bool>();
    any(architecture.kernels.cross_entropy.emplace());
    any(architecture.kernels.qkv.emplace());
    any(architecture.kernels.kv_sharing.emplace());
    any(architecture.kernels.layout);
    architecture.kernels.softmax_dtype = *rc::gen::element(Dtype::half, Dtype::fp32);
    architecture.kernels.dropout_mask = *rc::gen::element(Dtype::boolean, Dtype::half);
    RC_ASSERT(parse_model(write_model(model), "models/llama-3-8b.json") == model);
  }));
}

}  // namespace headroom
