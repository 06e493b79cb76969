#include "interop/launch_in/megatron_model.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/model/hybrid_pattern.hpp"
#include "interop/launch_in/tree_run.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

std::string last_name(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');
  const std::string whole = path.substr(0, end == std::string::npos ? 0 : end + 1);
  return whole.substr(whole.rfind('/') + 1);
}

// The vocabulary of an embedded model, before it is padded.
std::optional<std::int64_t> vocabulary_of(std::string_view model) {
  const EmbeddedFile* const file = find_embedded("model", model);
  if (file == nullptr) return std::nullopt;
  return parse_model(file->text, std::string(file->path)).vocabulary;
}

// An embedded model with as many layers of this width.
std::optional<std::pair<std::string, std::int64_t>> model_of_shape(const RunBuilder& run,
                                                                   std::int64_t layers) {
  const auto number = [&](std::string_view path) -> std::int64_t {
    const Json* const value = run.member_at(path);
    return value != nullptr && value->is_number_integer() ? value->get<std::int64_t>() : 0;
  };
  for (const Transformer& model : list_models()) {
    if (model.hidden == number("hidden") && model.heads == number("heads") && model.layers == layers &&
        model.feedforward == number("feedforward"))
      return std::pair{model.name, model.vocabulary};
  }
  return std::nullopt;
}

// Sizes of tokenizers that need no file to be known [megatron/training/tokenizer/tokenizer.py].
struct Tokenizer {
  std::string_view type;
  std::int64_t size;
  std::string_view because;
};
constexpr std::array<Tokenizer, 10> tokenizers{{
    {"GPT2BPETokenizer", 50257, "GPT-2's BPE"},
    {"BertWordPieceLowerCase", 30522, "BERT's uncased word pieces"},
    {"BertWordPieceCase", 28996, "BERT's cased word pieces"},
    {"Llama2Tokenizer", 32000, "Llama 2's"},
    {"LLaMATokenizer", 32000, "Llama's"},
    {"Llama3Tokenizer", 128256, "Llama 3's"},
    {"LLama3Tokenizer", 128256, "Llama 3's"},  // of Pai-Megatron-Patch
    {"MistralTokenizer", 32768, "Mistral's third version"},
    {"Qwen2Tokenizer", 151643, "Qwen 2's"},  // of Pai-Megatron-Patch, which adds --extra-vocab-size
    {"Qwen3Tokenizer", 151643, "Qwen 3's"},
}};

}  // namespace

void read_vocabulary(const MegatronSettings& asked, std::int64_t layers, RunBuilder& run) {
  const Written* const size = asked.first({"vocab_size", "padded_vocab_size", "pad_vocab_size_to"});
  if (size != nullptr && asked.number(*size)) {
    // NullTokenizer adds the end of documents [megatron/core/tokenizers/text/libraries/null_tokenizer.py].
    constexpr std::int64_t most = std::int64_t{1} << 40;
    const std::int64_t rows = std::min(*asked.number(*size), most);
    const bool adds_end = size->name == "vocab_size" && asked.text("tokenizer_type") == "NullTokenizer";
    run.member("vocabulary", rows + (adds_end ? 1 : 0), size);
    if (size->name != "vocab_size") run.member("vocabulary_multiple", 1, size);
    return;
  }
  const Written* const tokenizer = asked.first({"patch_tokenizer_type", "tokenizer_type"});
  const std::string type = tokenizer == nullptr ? "" : asked.text(tokenizer->name);
  // Llama's tokenizers are of the file that is named, whose size only the file says [core/tokenizers/text/libraries/
  // sentencepiece_tokenizer.py].
  const bool of_vocabulary = type == "GPT2BPETokenizer";
  const Written* const file = asked.find(of_vocabulary ? "vocab_file" : "tokenizer_model");
  const std::string file_name = file == nullptr ? "" : last_name(text_of_values(*file));
  const std::string of_file = file == nullptr ? "" : lower_case(text_of_values(*file));
  const bool has_folder = of_file.find('/') != std::string::npos;
  const bool of_other_file = of_vocabulary ? has_folder && of_file.find("gpt") == std::string::npos
                                           : !file_name.empty() && file_name != "tokenizer.model" &&
                                                 lower_case(file_name).find("llama") == std::string::npos;
  for (const Tokenizer& known : tokenizers) {
    if (known.type != type) continue;
    if (of_other_file && (of_vocabulary || type == "Llama2Tokenizer" || type == "LLaMATokenizer")) {
      run.member("vocabulary", known.size, tokenizer);
      return run.assume(
          fmt::format("the vocabulary is {}, {}: that of {} is not known (--set vocabulary=N)", known.size,
                      known.because, printable(of_vocabulary ? text_of_values(*file) : file_name)),
          file);
    }
    constexpr std::int64_t most = 1 << 20;
    const Written* const extra = type.starts_with("Qwen") ? asked.find("extra_vocab_size") : nullptr;
    const std::int64_t more =
        extra == nullptr ? 0 : std::clamp<std::int64_t>(asked.number(*extra).value_or(0), 0, most);
    run.member("vocabulary", known.size + more, tokenizer);
    return run.imply(fmt::format("the vocabulary is {}, {}{}", known.size + more, known.because,
                                 more > 0 ? fmt::format(" plus {} of --extra-vocab-size", more) : ""),
                     tokenizer);
  }
  for (const std::string_view flag :
       {"tokenizer_model", "tokenizer_name_or_path", "load", "pretrained_checkpoint"}) {
    const Written* const named = asked.find(flag);
    if (named == nullptr || !named->unknown.empty()) continue;
    const std::string path = text_of_values(*named);
    const std::string folder = path.substr(0, path.rfind('/') + 1);  // of "llama-2-7b/tokenizer.model"
    for (const std::string& name : {path, last_name(path), last_name(folder)}) {
      const NameMeaning meaning = meaning_of("model", name);
      if (meaning.names.size() != 1) continue;
      const auto vocabulary = vocabulary_of(meaning.names.front());
      if (!vocabulary) continue;
      run.member("vocabulary", *vocabulary, named);
      return run.imply(fmt::format("the vocabulary is {}, that of {}", *vocabulary, meaning.names.front()),
                       named);
    }
  }
  if (type.empty() && (asked.has("merge_file") || asked.has("vocab_file"))) {
    run.member("vocabulary", 50257, asked.find("vocab_file"));
    return run.imply("the vocabulary is 50257, GPT-2's BPE", asked.find("vocab_file"));
  }
  if (const auto alike = model_of_shape(run, layers)) {
    run.member("vocabulary", alike->second, nullptr);
    return run.assume(fmt::format("the vocabulary is {}, that of {}, which has layers of the same sizes",
                                  alike->second, alike->first));
  }
  run.member("vocabulary", 50257, nullptr);
  run.assume(
      type.empty()
          ? "the vocabulary is 50257, GPT-2's: no --vocab-size is given (--set vocabulary=N)"
          : "the vocabulary is 50257, GPT-2's: that of the tokenizer is not known (--set vocabulary=N)");
}

namespace {

void read_positions(const MegatronSettings& asked, RunBuilder& run) {
  const Written* const type = asked.first({"position_embedding_type", "use_rotary_position_embeddings"});
  const std::string text = asked.text("position_embedding_type");
  const bool rotary = text == "rope" || text == "yarn" || text == "mrope" ||
                      (asked.is("use_rotary_position_embeddings") && text != "none");
  if (rotary) {
    run.member("positions", "rotary", type);
    if (text == "yarn" || asked.is("enable_gpt_oss")) run.member("scaled_rotary", true, type);
  } else if (text == "none" || asked.is("no_position_embedding")) {
    run.member("positions", "none", asked.first({"position_embedding_type", "no_position_embedding"}));
  } else if (text == "alibi") {
    run.member("positions", "alibi", type);
  } else {
    run.member("positions", "learned", type);
    if (type == nullptr) run.imply("positions are learned: --position-embedding-type is not given");
  }
  const Written* const most = asked.find("max_position_embeddings");
  if (most != nullptr && asked.number(*most)) run.member("max_positions", *asked.number(*most), most);
}

void read_dropout(const MegatronSettings& asked, RunBuilder& run) {
  for (const char* const name : {"attention_dropout", "hidden_dropout"}) {
    const Written* const setting = asked.find(name);
    if (setting == nullptr) {
      run.imply(fmt::format("{} of 0.1 saves masks: it is not given", name));
    } else {
      run.member(name, !is_zero(*setting), setting);
    }
  }
}

// Layers of one part each, by their letters.
bool read_hybrid(const MegatronSettings& asked, const std::string& program, RunBuilder& run) {
  const Written* const pattern = asked.first({"hybrid_layer_pattern", "hybrid_override_pattern",
                                              "hybrid_attention_ratio", "hybrid_mlp_ratio", "num_layers"});
  const std::string text = hybrid_letters(asked, program, run);
  if (text.empty()) return false;
  const auto layers = hybrid_layers(text);
  if (!layers) {
    run.problem(*pattern, hybrid_pattern_rule());
    return false;
  }
  Json runs = Json::array();
  Json kinds = Json::object();
  const auto size = [&](std::string_view name, std::int64_t fallback) {
    return asked.number(name).value_or(fallback);
  };
  const std::int64_t hidden = size("hidden_size", 1);
  for (const HybridLayer layer : *layers) {
    const std::string kind(name_of(layer));
    if (runs.empty() || runs.back()["kind"] != kind) runs.push_back({{"kind", kind}, {"count", 0}});
    runs.back()["count"] = runs.back()["count"].get<std::int64_t>() + 1;
    if (kinds.contains(kind)) continue;
    if (layer == HybridLayer::mlp || layer == HybridLayer::experts) {
      kinds[kind] = {{"parts", "mlp"}};
    } else if (layer == HybridLayer::attention) {
      kinds[kind] = {{"parts", "mixer"}};
    } else if (kind == "mamba") {
      const std::int64_t head = size("mamba_head_dim", 64);
      kinds[kind] = {{"parts", "mixer"},
                     {"mamba",
                      {{"heads", size("mamba_num_heads", 2 * hidden / std::max<std::int64_t>(head, 1))},
                       {"head_size", head},
                       {"state_size", size("mamba_state_dim", 128)},
                       {"groups", size("mamba_num_groups", 8)}}}};
    } else {
      run.problem(*pattern, "has layers of kind " + kind + ", which are not read from a script yet");
      return false;
    }
  }
  run.member("layers", std::move(runs), pattern);
  run.member("layer_kinds", std::move(kinds), pattern);
  if (asked.has_experts()) read_experts(asked, "layer_kinds/moe/", run);
  return true;
}

}  // namespace

void read_megatron_model(const MegatronSettings& asked, const std::string& program, RunBuilder& run) {
  const Written* const layers = asked.first({"num_layers", "encoder_num_layers", "decoder_num_layers"});
  const auto require = [&](const Written* setting, std::string_view name) {
    if (setting != nullptr && !setting->unknown.empty()) asked.tell_unknown(*setting, run, name);
  };
  require(layers, "layers");
  const Written* const length = asked.first({"seq_length", "encoder_seq_length"});
  require(length, "sequence");
  const bool decoder = program.find("vlm") != std::string::npos && asked.tells("decoder_seq_length");
  const Written* const sequence = decoder ? asked.find("decoder_seq_length") : length;
  if (sequence != nullptr && asked.number(*sequence)) {
    run.set("sequence", text_of_values(*sequence), sequence);
    run.member("sequence", *asked.number(*sequence), sequence);
  }
  const bool hybrid = read_hybrid(asked, program, run);
  if (!hybrid && (layers == nullptr || !asked.number(*layers))) return;
  const Json* const hidden = run.member_at("hidden");
  if (hidden == nullptr || !hidden->is_number_integer()) return;
  const std::int64_t count = layers == nullptr ? 0 : asked.number(*layers).value_or(0);
  if (!hybrid && (count < 1 || count > most_layers)) {
    return run.problem(*layers, fmt::format("must be a number from 1 to {}", most_layers));
  }
  if (run.member_at("sequence") == nullptr) {
    run.member("sequence", asked.number("max_position_embeddings").value_or(2048), nullptr);
    run.assume("the sequence length is that of the positions: --seq-length is not given");
  }
  const std::int64_t h = hidden->get<std::int64_t>();
  const Written* const width = asked.find("ffn_hidden_size");
  require(width, "feedforward");
  if (width != nullptr && asked.number(*width)) {
    run.member("feedforward", *asked.number(*width), width);
  } else if (h > 0 && h < (1 << 24)) {
    const bool gated = asked.is("swiglu");
    const std::int64_t own = gated ? 8 * h / 3 / 64 * 64 : 4 * h;
    run.member("feedforward", own, nullptr);
    run.imply(fmt::format("the MLP is {} wide{}: --ffn-hidden-size is not given", own,
                          gated ? ", as with --swiglu" : ""));
  }
  const std::string norm = asked.text("normalization");
  run.member("normalization", lower_case(norm) == "rmsnorm" ? "rms_norm" : "layer_norm",
             asked.find("normalization"));
  read_positions(asked, run);
  read_attention(asked, run);
  read_dropout(asked, run);
  read_clamp(asked, run);
  if (hybrid)
    read_window(asked, run);
  else
    read_layers(asked, *layers, count, run);
  read_vocabulary(asked, count, run);
  if (program.find("bert") != std::string::npos)
    run.assume("BERT is read as a decoder of the same layers: its pooler and heads are left out");
  if (program.find("t5") != std::string::npos)
    run.assume("T5 is read by the layers of one stack: its other one and cross attention are left out");
  if (program.find("vlm") != std::string::npos || program.find("vision") != std::string::npos)
    run.assume("the language model is read: the vision encoder is left out");
}

void read_stages(const MegatronSettings& asked, RunBuilder& run) {
  const std::int64_t p = run.count("pipeline_parallel").value_or(1);
  if (asked.is("no_pipeline_parallel")) run.drop("pipeline_parallel");
  if (const Written* const layout = asked.find("pipeline_model_parallel_layout")) {
    std::string text = text_of_values(*layout);
    std::erase_if(text, [](char c) { return c == '\'' || c == '"' || c == '\\'; });
    if (!layout->unknown.empty()) return asked.tell_unknown(*layout, run, "stage_layers");
    if (p > 1 || text.find('|') != std::string::npos) run.set("stage_layers", text, layout);
    return;
  }
  // Bars of a hybrid pattern end stages [core/models/hybrid/hybrid_layer_allocation.py].
  if (const Written* const pattern = asked.first({"hybrid_layer_pattern", "hybrid_override_pattern"})) {
    std::string text = text_of_values(*pattern);
    std::erase(text, '\'');
    if (pattern->unknown.empty() && text.find('|') != std::string::npos)
      return run.set("stage_layers", text, pattern);
  }
  // Layers of each stage [MindSpeed-LLM, core/pipeline_parallel/dynamic_pipeline_parallel.py].
  if (const Written* const list = asked.find("num_layer_list"); list != nullptr && p > 1) {
    if (!list->unknown.empty()) return asked.tell_unknown(*list, run, "stage_layers");
    return run.set("stage_layers", text_of_values(*list), list);
  }
  const Written* const first =
      asked.first({"decoder_first_pipeline_num_layers", "num_layers_in_first_pipeline_stage"});
  const Written* const last =
      asked.first({"decoder_last_pipeline_num_layers", "num_layers_in_last_pipeline_stage"});
  std::string ends;
  for (const auto& [name, setting] : {std::pair{"first", first}, std::pair{"last", last}}) {
    if (setting == nullptr || !is_on(*setting)) continue;
    if (!setting->unknown.empty()) return asked.tell_unknown(*setting, run, "stage_layers");
    ends += fmt::format("{}{}={}", ends.empty() ? "" : ",", name, text_of_values(*setting));
  }
  if (!ends.empty() && p > 1) return run.set("stage_layers", ends, first == nullptr ? last : first);
  // DeepSpeed's engine divides layers by their parameters, and a stage of the embedding alone has none.
  const bool divides_otherwise = asked.has("deepspeed") || asked.has("standalone_embedding_stage") ||
                                 asked.has("pipeline_model_parallel_split_rank");
  const Written* const pipeline = asked.first({"pipeline_model_parallel_size", "num_layers"});
  if (divides_otherwise || pipeline == nullptr) return;
  run.need_equal_stages({.pipeline = *pipeline,
                         .layers_of_stage = copy_of(asked.find("num_layers_per_virtual_pipeline_stage")),
                         .embedding = copy_of(asked.find("account_for_embedding_in_pipeline_split")),
                         .loss = copy_of(asked.find("account_for_loss_in_pipeline_split"))});
}

}  // namespace headroom
