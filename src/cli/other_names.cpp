#include "cli/other_names.hpp"

#include <algorithm>
#include <array>

#include "cli/flags.hpp"

namespace headroom::cli {
namespace {

// Another name of a flag that is no field of a strategy, or of a flag and its value. Fields have theirs in
// strategy_fields.
struct OtherName {
  std::string_view flag;
  std::string_view own;  // empty: it says what holds anyway
};

constexpr std::array other_names{
    OtherName{"--gpus", "--devices"},
    OtherName{"--num-gpus", "--devices"},
    OtherName{"--world-size", "--devices"},
    OtherName{"--stack", "--software"},
    OtherName{"--framework", "--software"},
    OtherName{"--gpu", "--system"},
    OtherName{"--cluster", "--system"},
    OtherName{"--seq-len", "--sequence"},
    OtherName{"--seqlen", "--sequence"},
    OtherName{"--sequence-length", "--sequence"},
    OtherName{"--num-virtual-stages-per-pipeline-rank", "--virtual-pipeline"},
    OtherName{"--microbatch-group-size-per-virtual-pipeline-stage", "--microbatch-group-size"},
    OtherName{"--json", "--format=json"},
    OtherName{"--csv", "--format=csv"},
    OtherName{"--markdown", "--format=markdown"},
    OtherName{"--bf16", ""},
    OtherName{"--fp8", "--precision=fp8"},
    OtherName{"--fp8-hybrid", "--precision=fp8_delayed"},
    OtherName{"--fp4", "--precision=nvfp4"},
    OtherName{"--grad-reduce-in-bf16", "--gradient-dtype=half"},
    OtherName{"--overlap-grad-reduce", "--set-software=overlap_grad_reduce=true"},
    OtherName{"--no-overlap-grad-reduce", "--set-software=overlap_grad_reduce=false"},
    OtherName{"--overlap-param-gather", "--set-software=overlap_param_gather=true"},
    OtherName{"--no-overlap-param-gather", "--set-software=overlap_param_gather=false"},
    OtherName{"--tp-comm-overlap", "--set-software=overlap_tensor_parallel=full"},
    OtherName{"--no-tp-comm-overlap", "--set-software=overlap_tensor_parallel=backward"},
    OtherName{"--no-async-tensor-model-parallel-allreduce", "--set-software=overlap_tensor_parallel=none"},
    OtherName{"--overlap-p2p-communication", "--set-software=overlap_p2p=true"},
    OtherName{"--no-overlap-p2p-communication", "--set-software=overlap_p2p=false"},
    OtherName{"--enable-cuda-graph", "--set-software=cuda_graphs=layers"},
    OtherName{"--torch-compile", "--set-software=launches=compiled"},
    OtherName{"--compile", "--set-software=launches=compiled"},
    OtherName{"--recompute-activations", "--recompute=selective"},
    OtherName{"--use-flash-attn", "--attention=flash"},
    OtherName{"--cross-entropy-loss-fusion", ""},  // the native one keeps as much
    OtherName{"--moe-enable-deepep", "--moe-dispatcher=flex"},
    OtherName{"--fine-grained-activation-offloading", ""},  // which modules say
    OtherName{"--load-in-4bit", "--base-dtype=nf4"},
    OtherName{"--zero3", "--data-sharding=zero3"},
    OtherName{"--use-torch-fsdp2", "--data-sharding=zero3"},
    OtherName{"--use-megatron-fsdp", "--data-sharding=zero3"},
    OtherName{"--use-custom-fsdp", "--data-sharding=zero3"},
};

// A size of something that there is one of as long as it is not modelled.
struct Unmodelled {
  std::string_view flag;
  std::string_view what;
};

constexpr std::array unmodelled{
    Unmodelled{"--cpu-offloading", "offloading whole layers (--offload-modules offloads parts of all)"},
    Unmodelled{"--fp8-multi-head-attention", "queries, keys and values that linears give in FP8"},
    Unmodelled{"--activation-func-fp8-input-store", "inputs of the activation that are kept in FP8"},
    Unmodelled{"--te-precision-config-file", "a precision for each module"},
};

// What Headroom says otherwise, in words that stand behind "is".
struct Otherwise {
  std::string_view flag;
  std::string_view rule;
};

constexpr std::array otherwise{
    Otherwise{"--lora-alpha", "no matter of memory and time: leave it out"},
    Otherwise{"--lora-dropout",
              "not modelled: leave it out, and know that it keeps an input and a mask more a linear"},
    Otherwise{"--num-experts", "a field of the model here: --set experts.count=N"},
    Otherwise{"--moe-router-topk", "a field of the model here: --set experts.per_token=N"},
    Otherwise{"--nodes", "not asked for: give all GPUs, nodes times GPUs of each, as --devices"},
    Otherwise{"--num-nodes", "not asked for: give all GPUs, nodes times GPUs of each, as --devices"},
    Otherwise{"--nnodes", "not asked for: give all GPUs, nodes times GPUs of each, as --devices"},
    Otherwise{"--gpus-per-node", "a field of the system here: --set-system devices_per_node=N"},
    Otherwise{
        "--gradient-accumulation-steps",
        "not asked for: give --global-batch, which is its product with --micro-batch and --data-parallel"},
    Otherwise{
        "--num-microbatches",
        "not asked for: give --global-batch, which is its product with --micro-batch and --data-parallel"},
    Otherwise{"--num-layers-per-virtual-pipeline-stage",
              "asked the other way round here: give --virtual-pipeline, the virtual stages of a PP rank"},
    Otherwise{"--num-layers", "a field of the model here: --set layers=N"},
    Otherwise{"--hidden-size", "a field of the model here: --set hidden=N"},
    Otherwise{"--ffn-hidden-size", "a field of the model here: --set feedforward=N"},
    Otherwise{"--num-attention-heads", "a field of the model here: --set heads=N"},
    Otherwise{"--num-query-groups", "a field of the model here: --set key_value_heads=N"},
    Otherwise{"--vocab-size", "a field of the model here: --set vocabulary=N"},
    Otherwise{"--fp16", "not told from BF16, which is as large and, on these GPUs, as fast: leave it out"},
};

// Optimizers that are one here with moments of another dtype [Hugging Face's trainer, --optim; bitsandbytes].
constexpr std::array<std::string_view, 6> adam_of_int8{"adam8bit",       "adamw8bit", "adamw_8bit",
                                                       "adamw_bnb_8bit", "Adam8bit",  "AdamW8bit"};

// Megatron-LM's recipes, and the precisions that they are.
struct Fp8Recipe {
  std::string_view theirs;
  std::string_view own;
};
constexpr std::array fp8_recipes{
    Fp8Recipe{"delayed", "fp8_delayed"},
    Fp8Recipe{"tensorwise", "fp8"},
    Fp8Recipe{"blockwise", "fp8_blockwise"},
    Fp8Recipe{"mxfp8", "mxfp8"},
};

template <class Rows>
const auto* find_row(const Rows& rows, const std::string& flag) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.flag == flag; });
  return found == rows.end() ? nullptr : &*found;
}

// One pass over the arguments.
class Translation {
 public:
  explicit Translation(const std::vector<std::string>& arguments) : arguments_(arguments) {}

  std::vector<std::string> run(const std::function<bool(const std::string& flag)>& known) {
    for (next_ = 0; next_ < arguments_.size();) {
      const std::string argument = arguments_[next_++];
      const std::size_t equals = std::min(argument.find('='), argument.size());
      const std::string flag = argument.substr(0, equals);
      if (flag == "--optimizer" || flag == "--optim") {
        read_optimizer(argument.substr(equals));
      } else if (!argument.starts_with("--") || known(flag) || !translate(flag, argument.substr(equals))) {
        result_.push_back(argument);
      }
    }
    if (!problems_.empty()) throw InputError(std::move(problems_));
    return std::move(result_);
  }

 private:
  // Whether the flag is another program's. `rest` is its value, with the sign before it, or empty.
  bool translate(const std::string& flag, const std::string& rest) {
    if (const OtherName* const other = find_row(other_names, flag)) {
      if (!other->own.empty()) result_.push_back(std::string(other->own) + rest);
      return true;
    }
    if (flag == "--distributed-optimizer" || flag == "--use-distributed-optimizer" || flag == "--fsdp") {
      read_sharding(flag == "--fsdp" ? "zero3" : "yes", rest);
      return true;
    }
    if (const StrategyField* const field = find_field(flag.substr(2))) {
      if (field->letter == flag.substr(2)) return false;
      result_.push_back(flag_of(field->name) + rest);
      return true;
    }
    if (flag == "--optimizer-cpu-offload") {
      read_offload();
    } else if (flag == "--use-precision-aware-optimizer") {
      read_precision_aware();
    } else if (flag == "--first-last-layers-bf16") {
      read_first_last();
    } else if (flag == "--fp8-recipe") {
      read_recipe(flag, value(rest));
    } else if (flag == "--fp8-format") {
      read_fp8_format(flag, value(rest));
    } else if (flag == "--fp4-format") {
      read_fp4_format(flag, value(rest));
    } else if (flag == "--cuda-graphs") {
      result_.push_back("--set-software=cuda_graphs=" + value(rest));
    } else if (flag == "--cuda-graph-impl") {
      read_graphs(flag, value(rest));
    } else if (flag == "--cuda-graph-modules" || flag == "--cuda-graph-scope") {
      read_graph_modules(value(rest));
    } else if (flag == "--cross-entropy") {
      result_.push_back("--set-software=cross_entropy=" + value(rest));
    } else if (flag == "--cross-entropy-fusion-impl") {
      read_loss(flag, value(rest));
    } else if (const Unmodelled* const none = find_row(unmodelled, flag)) {
      not_modelled(flag, none->what);
    } else if (const Otherwise* const other = find_row(otherwise, flag)) {
      problems_.push_back({flag, "is " + std::string(other->rule)});
    } else {
      return false;
    }
    return true;
  }

  // Behind the sign, or the argument that follows.
  std::string value(const std::string& rest) {
    if (!rest.empty()) return rest.substr(1);
    const bool follows = next_ < arguments_.size() && !arguments_[next_].starts_with("-");
    return follows ? arguments_[next_++] : std::string();
  }

  void read_optimizer(const std::string& rest) {
    std::string name = value(rest);
    const bool int8 = std::find(adam_of_int8.begin(), adam_of_int8.end(), name) != adam_of_int8.end();
    result_.push_back("--optimizer=" + (int8 ? std::string(name_of(OptimizerKind::adam)) : name));
    if (!int8) return;
    result_.emplace_back("--exp-avg-dtype=int8");
    result_.emplace_back("--exp-avg-sq-dtype=int8");
  }

  // All of it, unless a fraction is asked for.
  void read_offload() {
    const bool stated = std::any_of(arguments_.begin(), arguments_.end(), [](const std::string& other) {
      return other.starts_with("--optimizer-offload-fraction");
    });
    if (!stated) result_.emplace_back("--optimizer-offload-fraction=1");
  }

  // One layer at either end, unless other numbers are asked for.
  void read_first_last() {
    for (const std::string end : {"start", "end"}) {
      const std::string own = "--bf16-layers-at-" + end;
      const std::string theirs = "--num-layers-at-" + end + "-in-bf16";
      const bool stated = std::any_of(arguments_.begin(), arguments_.end(), [&](const std::string& other) {
        return other.starts_with(own) || other.starts_with(theirs);
      });
      if (!stated) result_.push_back(own + "=1");
    }
  }

  // FusedAdam keeps the low 16 bits of fp32 master weights, unless another dtype of them is asked for.
  void read_precision_aware() {
    const bool stated = std::any_of(arguments_.begin(), arguments_.end(), [](const std::string& other) {
      return other.starts_with("--main-params-dtype");
    });
    if (!stated) result_.emplace_back("--main-params-dtype=remainder");
  }

  // A flag that stands alone for a mode, or with a value, which is a spelling of one; of a search, or with both.
  void read_sharding(std::string value, const std::string& rest) {
    const auto is_value = [](const std::string& text) {
      return text == "both" || from_name<DataSharding>(text).has_value();
    };
    if (!rest.empty()) {
      value = rest.substr(1);
    } else if (next_ < arguments_.size() && is_value(arguments_[next_])) {
      value = arguments_[next_++];
    }
    result_.push_back("--data-sharding=" + (value == "both" ? "zero1,none" : value));
  }

  // Megatron-LM's --fp8-format alone means delayed scaling.
  void read_fp8_format(const std::string& flag, const std::string& format) {
    const bool recipe = std::any_of(arguments_.begin(), arguments_.end(), [](const std::string& other) {
      return other.starts_with("--fp8-recipe");
    });
    if (format != "hybrid" && format != "e4m3") {
      problems_.push_back(
          {flag, "must be hybrid or e4m3, which are as large and as fast, not '" + format + "'"});
    } else if (!recipe) {
      result_.emplace_back("--precision=fp8_delayed");
    }
  }

  void read_fp4_format(const std::string& flag, const std::string& format) {
    if (format != "e2m1") problems_.push_back({flag, "must be e2m1, not '" + format + "'"});
    result_.emplace_back("--precision=nvfp4");
  }

  // Transformer Engine's keeps the gradient in fp32 in place of the softmax.
  void read_loss(const std::string& flag, const std::string& implementation) {
    if (implementation != "native" && implementation != "te") {
      problems_.push_back({flag, "must be native or te, not '" + implementation + "'"});
      return;
    }
    result_.push_back(std::string("--set-software=cross_entropy=") +
                      (implementation == "te" ? "fused_fp32" : "vocabulary_parallel"));
  }

  // Where they are recorded by makes no difference.
  void read_graphs(const std::string& flag, const std::string& implementation) {
    const bool of_layers = implementation == "local" || implementation == "transformer_engine";
    if (!of_layers && !from_name<CudaGraphs>(implementation)) {
      problems_.push_back(
          {flag, "must be none, local, transformer_engine or full_iteration, not '" + implementation + "'"});
      return;
    }
    result_.push_back("--set-software=cuda_graphs=" + (of_layers ? "layers" : implementation));
  }

  // One after another, or behind each other with commas between them.
  void read_graph_modules(std::string names) {
    while (next_ < arguments_.size() && from_name<GraphModule>(arguments_[next_]))
      names += "," + arguments_[next_++];
    if (names == "full_iteration") {
      result_.emplace_back("--set-software=cuda_graphs=full_iteration");
      return;
    }
    result_.push_back("--set-software=cuda_graph_modules=" + names);
  }

  void read_recipe(const std::string& flag, const std::string& recipe) {
    for (const auto& [theirs, own] : fp8_recipes) {
      if (recipe != theirs) continue;
      result_.push_back("--precision=" + std::string(own));
      return;
    }
    problems_.push_back({flag, "must be delayed, tensorwise, blockwise or mxfp8, not '" + recipe + "'"});
  }

  void not_modelled(const std::string& flag, std::string_view what) {
    problems_.push_back({flag, "is not modelled yet: " + std::string(what)});
  }

  const std::vector<std::string>& arguments_;
  std::size_t next_ = 0;
  std::vector<std::string> result_;
  std::vector<Problem> problems_;
};

}  // namespace

std::string rule_of_varied(const std::string& field) {
  std::string flag = "--" + field;
  std::replace(flag.begin(), flag.end(), '_', '-');
  if (const Unmodelled* const none = find_row(unmodelled, flag))
    return "is not modelled yet: " + std::string(none->what);
  return {};
}

std::vector<std::string> in_own_names(const std::vector<std::string>& arguments,
                                      const std::function<bool(const std::string& flag)>& known) {
  return Translation(arguments).run(known);
}

}  // namespace headroom::cli
