// The embedded data files: found by name, valid, and with the sizes that were published.
#include "headroom/io/catalog.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <unistd.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/system_file.hpp"
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
  CHECK(models.size() == 69);
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
  CHECK(list_systems().size() == 22);
  CHECK(read_system("dgx-a100-80g").memory == 80_GiB);
  CHECK(read_system("dgx-a100-40g").memory == 40_GiB);
  CHECK(read_system("gb200-nvl72").memory == 189471_MiB);
}

TEST_CASE("catalog: NVLink connects a rack of 72 devices, not the four of a host") {
  for (const char* name : {"gb200-nvl72", "gb300-nvl72"}) CHECK(read_system(name).devices_per_node == 72);
  CHECK(read_system("dgx-b300").devices_per_node == 8);
}

TEST_CASE("catalog: a misspelt name suggests the nearest") {
  CHECK(message_of([] { return read_model("gpt3-175"); }) ==
        "gpt3-175: is neither a file nor the name of a model (did you mean 'gpt3-175b'?)");
  CHECK(message_of([] { return read_model("LLAMA3-8B"); }) ==
        "LLAMA3-8B: is neither a file nor the name of a model (did you mean 'llama-3-8b'?)");
  CHECK(message_of([] { return read_system("dgx-a100"); }) ==
        "dgx-a100: is neither a file nor the name of a system (did you mean 'dgx-a100-40g' or "
        "'dgx-a100-80g'?)");
}

TEST_CASE("catalog: a GPU's short name suggests the systems that have it") {
  CHECK(message_of([] { return read_system("h100"); }) ==
        "h100: is neither a file nor the name of a system (did you mean 'dgx-h100-80g' or 'h100-96g' or "
        "'h100-nvl' or 'h100-pcie'?)");
  CHECK(message_of([] { return read_system("B200"); }) ==
        "B200: is neither a file nor the name of a system (did you mean 'dgx-b200-180g'?)");
  CHECK(message_of([] { return read_system("gb200"); }) ==
        "gb200: is neither a file nor the name of a system (did you mean 'gb200-nvl72'?)");
}

TEST_CASE("catalog: a path to a file that is not there suggests the name") {
  CHECK(
      message_of([] { return read_model("no/such/folder/gpt3-175b.json"); }) ==
      "no/such/folder/gpt3-175b.json: is neither a file nor the name of a model (did you mean 'gpt3-175b'?)");
}

TEST_CASE("catalog: a name that is like nothing known") {
  CHECK(message_of([] { return read_model("xyzzy-and-plugh"); }) ==
        "xyzzy-and-plugh: is neither a file nor the name of a model");
  CHECK(message_of([] { return read_model(""); }) == "\"\": is neither a file nor the name of a model");
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
  std::ofstream("gpt3-175b") << write_model(read_model("gpt2-small"));
  CHECK(read_model("gpt3-175b").hidden == 768);
  CHECK(read_model("gpt-22b").hidden == 6144);  // a folder of that name is not a model
  std::filesystem::current_path(before);
  std::filesystem::remove_all(folder);
}

}  // namespace headroom
