// The embedded data files: found by name, valid, and with the sizes that were published.
#include "headroom/io/catalog.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <unistd.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/remarks.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "io/catalog_names.hpp"
#include "messages.hpp"

namespace headroom {

TEST_CASE("catalog: names are sorted and lead to their files") {
  const auto names = embedded_names("model");
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(std::find(names.begin(), names.end(), "gpt3-175b") != names.end());
  REQUIRE(find_embedded("model", "gpt3-175b") != nullptr);
  CHECK(find_embedded("model", "gpt3-175b")->path == "models/gpt3-175b.json");
  CHECK(find_embedded("system", "gpt3-175b") == nullptr);
  CHECK(find_embedded("model", "") == nullptr);
}

TEST_CASE("catalog: every embedded model reads, and reads back what is written") {
  const std::vector<Transformer> models = list_models();
  CHECK(models.size() == 74);
  for (const Transformer& model : models) {
    CAPTURE(model.name);
    CHECK(read_model(model.name) == model);
    CHECK(parse_model(write_model(model), model.name + ".json") == model);
  }
}

TEST_CASE("catalog: the models of K22 table 3") {
  const auto sizes = [](const std::string& name) {
    const Transformer model = read_model(name);
    CHECK(model.feedforward == 4 * model.hidden);
    CHECK(model.vocabulary == 51200);
    CHECK(model.sequence == 2048);
    CHECK(model.architecture == Architecture());
    return std::array{model.heads, model.hidden, model.layers};
  };
  CHECK(sizes("gpt-22b") == std::array<std::int64_t, 3>{64, 6144, 48});
  CHECK(sizes("gpt3-175b") == std::array<std::int64_t, 3>{96, 12288, 96});
  CHECK(sizes("mt-nlg-530b") == std::array<std::int64_t, 3>{128, 20480, 105});
  CHECK(sizes("gpt-1t") == std::array<std::int64_t, 3>{160, 25600, 128});
}

TEST_CASE("catalog: Llama models are as published") {
  const Transformer model = read_model("llama-3-70b");
  CHECK(model.key_value_heads == 8);
  CHECK(model.head_size == 128);
  CHECK(model.architecture == Architecture{.activation = Activation::swiglu,
                                           .normalization = Normalization::rms_norm,
                                           .positions = Positions::rotary,
                                           .linear_bias = false,
                                           .qkv_bias = false,
                                           .hidden_dropout = false,
                                           .attention_dropout = false,
                                           .tied_embeddings = false,
                                           .kernels = {.attention = AttentionKernel::flash}});
}

TEST_CASE("catalog: the systems, with the memory that nvidia-smi shows") {
  CHECK(list_systems().size() == 31);
  CHECK(read_system("dgx-a100-80g").memory == 80_GiB);
  CHECK(read_system("dgx-a100-40g").memory == 40_GiB);
  CHECK(read_system("gb200-nvl72").memory == 189471_MiB);
}

TEST_CASE("catalog: NVLink connects a rack of 72 devices, not the four of a host") {
  for (const char* name : {"gb200-nvl72", "gb300-nvl72"}) CHECK(read_system(name).devices_per_node == 72);
  CHECK(read_system("dgx-b300").devices_per_node == 8);
}

TEST_CASE(
    "catalog: what people call a model, a system or a stack is that, whatever its case and punctuation") {
  const auto meant = [](std::string_view kind, std::string_view name) {
    const NameMeaning meaning = meaning_of(kind, name);
    return meaning.names.size() == 1 ? meaning.names.front() : std::string_view();
  };
  const auto model = [&](std::string_view name) { return meant("model", name); };
  const auto system = [&](std::string_view name) { return meant("system", name); };
  const auto stack = [&](std::string_view name) { return meant("software", name); };
  CHECK(model("Llama-3-70B") == "llama-3-70b");
  CHECK(model("llama3-8b") == "llama-3-8b");
  CHECK(model("Llama 3 8B") == "llama-3-8b");
  CHECK(model("llama-3.1-8b") == "llama-3-8b");
  CHECK(model("llama3.1-70b") == "llama-3-70b");
  CHECK(model("Meta-Llama-3-8B-Instruct") == "llama-3-8b");
  CHECK(model("meta-llama/Llama-3-8B") == "llama-3-8b");
  CHECK(model("meta-llama/Llama-3.2-1B") == "llama-3.2-1b");
  CHECK(model("Qwen/Qwen3-8B") == "qwen3-8b");
  CHECK(model("Mixtral-8x7B-Instruct-v0.1") == "mixtral-8x7b");
  CHECK(model("deepseek-r1") == "deepseek-v3");
  CHECK(model("gpt-3") == "gpt3-175b");
  CHECK(model("gpt2") == "gpt2-small");
  CHECK(system("h100") == "dgx-h100-80g");
  CHECK(system("H100-SXM") == "dgx-h100-80g");
  CHECK(system("NVIDIA H100 80GB HBM3") == "dgx-h100-80g");
  CHECK(system("NVIDIA H100 PCIe") == "h100-pcie");
  CHECK(system("H200") == "dgx-h200-141g");
  CHECK(system("b200") == "dgx-b200-180g");
  CHECK(system("gb200") == "gb200-nvl72");
  CHECK(system("MI300X") == "mi300x");
  CHECK(system("A100-80GB") == "dgx-a100-80g");
  CHECK(system("NVIDIA A100-SXM4-40GB") == "dgx-a100-40g");
  CHECK(stack("megatron") == "megatron-core-2025");
  CHECK(stack("nemo") == "nemo-2025");
  CHECK(stack("deepspeed") == "deepspeed-2025");
  CHECK(read_model("Llama-3-70B") == read_model("llama-3-70b"));
  CHECK(read_system("h100") == read_system("dgx-h100-80g"));
  CHECK(read_software("titan") == read_software("torchtitan-2025"));
}

TEST_CASE("catalog: of several releases the newest is meant") {
  std::string_view newest;
  for (const std::string_view name : embedded_names("software")) {
    if (name.starts_with("torchtitan-")) newest = name;
  }
  CHECK(meaning_of("software", "torchtitan").names == std::vector<std::string_view>{newest});
  CHECK(meaning_of("software", "dualpipe").names == std::vector<std::string_view>{"dualpipe-2025"});
}

TEST_CASE("catalog: every other name is of a file, and none is the exact name of another") {
  for (const CatalogName& row : catalog_names) {
    CAPTURE(row.theirs);
    CHECK(find_embedded(row.kind, row.ours) != nullptr);
    CHECK(find_embedded(row.kind, row.theirs) == nullptr);
    const NameMeaning meaning = meaning_of(row.kind, row.theirs);
    CHECK(std::find(meaning.names.begin(), meaning.names.end(), row.ours) != meaning.names.end());
  }
}

TEST_CASE("catalog: a name that may be several is refused with all of them") {
  CHECK(message_of([] { return read_system("a100"); }) ==
        "a100: may be 'dgx-a100-80g' or 'dgx-a100-40g' or 'a100-pcie' (A100s have 40 or 80 GB): name one of "
        "them");
  CHECK(message_of([] { return read_software("fsdp"); }) ==
        "fsdp: may be 'torchtitan-2025' or 'hf-trainer' or 'pytorch-fsdp-2023' (each runs a release of "
        "PyTorch's FSDP): name one of them");
}

TEST_CASE("catalog: a model of the hub is not taken for another by its name") {
  CHECK(meaning_of("model", "someone/llama-3-8b").names.empty());
  CHECK(meaning_of("model", "mistralai/Mistral-7B-v0.3").names.empty());  // of a larger vocabulary than v0.1
  CHECK(meaning_of("model", "Qwen/llama-3-8b").names.empty());
  CHECK(meaning_of("model", "./llama-3-8b").names.empty());
  CHECK(message_of([] { return read_model("mistralai/Mistral-7B-v0.3"); }) ==
        "mistralai/Mistral-7B-v0.3: is neither a file nor the name of a model (nearest by name, maybe of "
        "another shape: 'mistral-7b'); a model of the hub is read from its config.json, once that is "
        "downloaded");
}

TEST_CASE("catalog: how a name was read is told, and nothing where it is exact") {
  CHECK(remarks_on("system", "dgx-h100-80g").empty());
  CHECK(remarks_on("system", "no such system").empty());
  CHECK(remarks_on("system", "a100").empty());
  CHECK(remarks_on("model", "gpt-3") ==
        std::vector<std::string>{"gpt-3 is read as gpt3-175b: the largest GPT-3"});
  CHECK(remarks_on("software", "hf") == std::vector<std::string>{"hf is read as hf-trainer"});
}

TEST_CASE("catalog: a misspelt name suggests what is meant by its words and numbers") {
  CHECK(message_of([] { return read_model("gpt3-175"); }) ==
        "gpt3-175: is neither a file nor the name of a model (did you mean 'gpt3-175b'?)");
  CHECK(names_near("model", "lama-3-8b") == std::vector<std::string_view>{"llama-3-8b"});
  CHECK(names_near("model", "llama-70b") == std::vector<std::string_view>{"llama-2-70b", "llama-3-70b"});
  CHECK(names_near("model", "llama-3-7b") ==
        std::vector<std::string_view>{"llama-3-405b", "llama-3-70b", "llama-3-8b"});
  CHECK(names_near("software", "torchtitan-2026") ==
        std::vector<std::string_view>{"torchtitan-2024", "torchtitan-2025"});
  CHECK(names_near("model", "gpt-4").empty());
}

TEST_CASE("catalog: a path to a file that is not there suggests the name") {
  CHECK(
      message_of([] { return read_model("no/such/folder/gpt3-175b.json"); }) ==
      "no/such/folder/gpt3-175b.json: is neither a file nor the name of a model (did you mean 'gpt3-175b'?)");
}

TEST_CASE("catalog: a name that is like nothing known") {
  CHECK(message_of([] { return read_model("xyzzy-and-plugh"); }) ==
        "xyzzy-and-plugh: is neither a file nor the name of a model (see: headroom list models)");
  CHECK(message_of([] { return read_model(""); }) ==
        "\"\": is neither a file nor the name of a model (see: headroom list models)");
}

TEST_CASE("catalog: a name too long for the file system") {
  CHECK(contains(message_of([] { return read_model(std::string(100'000, 'x')); }),
                 "cannot be read: File name too long"));
}

TEST_CASE("catalog: a path on disk wins over a name") {
  const auto folder =
      std::filesystem::temp_directory_path() / ("headroom-catalog-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "gpt-22b");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  std::filesystem::create_directories(folder / "torchtitan");
  std::ofstream("gpt3-175b") << write_model(read_model("gpt2-small"));
  CHECK(read_model("gpt3-175b").hidden == 768);
  CHECK(read_model("gpt-22b").hidden == 6144);  // a folder of that name is not a model
  CHECK(read_software("torchtitan").name == "torchtitan@v0.2.2");
  CHECK(remarks_on("model", "gpt3-175b").empty());
  std::filesystem::current_path(before);
  std::filesystem::remove_all(folder);
}

}  // namespace headroom
