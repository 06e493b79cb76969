#include "cli/other_names.hpp"

#include <algorithm>
#include <optional>

#include "cli/flags.hpp"
#include "cli/other_name_tables.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/hardware/launch_mode.hpp"
#include "headroom/model/parts/mixers.hpp"
#include "io/other_keys.hpp"

namespace headroom::cli {
namespace {

template <class Rows>
const auto* find_row(const Rows& rows, const std::string& flag) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.flag == flag; });
  return found == rows.end() ? nullptr : &*found;
}

std::string rule_of(const Unplanned& idle) {
  return "changes neither memory nor time (" + std::string(idle.what) + "): drop the flag";
}

// "num_layers" of "--num-layers".
std::string key_of_flag(const std::string& flag) {
  std::string name = flag.substr(std::min<std::size_t>(flag.size(), 2));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// "KIND.MIXER.heads", of a kind of layers that is a mixer alone; empty: no mixer has such a flag.
std::string mixer_size_called(const std::string& flag) {
  std::string field;
  for_each_mixer([&](const auto& row, auto) {
    for (const auto& size : row.sizes) {
      if (size.flag != flag) continue;
      field = std::string(row.name) + "." + std::string(row.name) + "." + std::string(size.word);
    }
  });
  return field;
}

std::string graph_modules() {
  std::vector<GraphModule> all;
  all.reserve(spellings<GraphModule>.size());
  for (const auto& [module, name] : spellings<GraphModule>) all.push_back(module);
  return joined(all, ", ");
}

// One pass over the arguments.
class Translation {
 public:
  explicit Translation(const std::vector<std::string>& arguments) : arguments_(arguments) {}

  OwnNames run(const std::function<bool(const std::string& flag)>& known) {
    for (next_ = 0; next_ < arguments_.size();) {
      const std::string argument = arguments_[next_++];
      const std::size_t equals = std::min(argument.find('='), argument.size());
      const std::string flag = argument.substr(0, equals);
      const std::size_t before = result_.size();
      if (flag == "--optimizer" || flag == "--optim") {
        read_optimizer(argument.substr(equals));
      } else if (!argument.starts_with("--") || known(flag) || !translate(flag, argument.substr(equals))) {
        result_.push_back(argument);
        continue;
      }
      for (std::size_t i = before; i < result_.size(); ++i) note_typed(result_[i], flag);
    }
    write_graphs();
    write_backend();
    write_end_ranks();
    return {std::move(result_), std::move(typed_), std::move(problems_)};
  }

 private:
  void note_typed(const std::string& argument, const std::string& flag) {
    constexpr std::string_view of_stack = "--set-software=";
    std::string own = argument.substr(0, argument.find('='));
    if (argument.starts_with(of_stack)) {
      const std::size_t key = of_stack.size();
      own += " " + argument.substr(key, argument.find('=', key) - key);
    }
    if (own != flag) typed_.insert_or_assign(own, flag);
  }

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
    if (flag == "--fine-grained-activation-offloading") {
      read_fine_grained(flag);
    } else if (flag == "--optimizer-cpu-offload") {
      read_offload();
    } else if (flag == "--use-precision-aware-optimizer") {
      read_precision_aware();
    } else if (flag == "--decoder-first-pipeline-num-layers") {
      first_rank_ = value(rest);
    } else if (flag == "--decoder-last-pipeline-num-layers") {
      last_rank_ = value(rest);
    } else if (flag == "--first-last-layers-bf16") {
      read_first_last();
    } else if (flag == "--moe-flex-dispatcher-backend") {
      read_backend(flag, value(rest));
    } else if (flag == "--moe-enable-deepep") {
      backend_ = "deepep";
    } else if (flag == "--fp8-recipe") {
      read_recipe(flag, value(rest));
    } else if (flag == "--fp8-format") {
      read_fp8_format(flag, value(rest));
    } else if (flag == "--fp4-format") {
      read_fp4_format(flag, value(rest));
    } else if (flag == "--enable-cuda-graph") {
      read_graphs(flag, "local");
    } else if (flag == "--cuda-graphs" || flag == "--cuda-graph-impl") {
      read_graphs(flag, value(rest));
    } else if (flag == "--cuda-graph-modules" || flag == "--cuda-graph-scope") {
      read_graph_scope(flag, value(rest));
    } else if (flag == "--use-transformer-engine-op-fuser") {
      // Of experts; no other module has more kernels without it.
      result_.emplace_back("--set-software=clamp_kernel=fused");
      result_.emplace_back("--set-software=expert_bias_kernel=fused");
    } else if (flag == "--cross-entropy") {
      result_.push_back("--set-software=cross_entropy=" + value(rest));
    } else if (flag == "--cross-entropy-fusion-impl") {
      read_loss(flag, value(rest));
    } else if (const Unmodelled* const none = find_row(unmodelled, flag)) {
      not_modelled(flag, none->what);
    } else if (const Unplanned* const idle = find_row(unplanned, flag)) {
      problems_.push_back({flag, rule_of(*idle)});
    } else if (const std::string_view key = key_called(key_of_flag(flag)); !key.empty()) {
      problems_.push_back({flag, "is a field of the model: use --set " + std::string(key) + "=N"});
    } else if (const std::string size = mixer_size_called(flag); !size.empty()) {
      problems_.push_back({flag, "is a field of a kind of layers: use --set layer_kinds." + size + "=N"});
    } else if (const Otherwise* const other = find_row(otherwise, flag)) {
      problems_.push_back({flag, std::string(other->rule)});
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

  // Nothing beside the modules, without which it offloads nothing.
  void read_fine_grained(const std::string& flag) {
    const bool stated = std::any_of(arguments_.begin(), arguments_.end(), [](const std::string& other) {
      return other.starts_with("--offload-modules");
    });
    if (!stated) problems_.push_back({flag, "needs --offload-modules: core_attn, mlp_norm, moe_act, ..."});
  }

  // All of it, unless a fraction is asked for.
  void read_offload() {
    const bool stated = std::any_of(arguments_.begin(), arguments_.end(), [](const std::string& other) {
      return other.starts_with("--optimizer-offload-fraction");
    });
    if (!stated) result_.emplace_back("--optimizer-offload-fraction=1");
  }

  // --stage-layers=first=7,last=6: the layers of the other ranks follow once the model is known.
  void write_end_ranks() {
    if (!first_rank_ && !last_rank_) return;
    const std::string first = first_rank_ ? "first=" + *first_rank_ : std::string();
    const std::string last = last_rank_ ? "last=" + *last_rank_ : std::string();
    result_.push_back("--stage-layers=" + first + (first.empty() || last.empty() ? "" : ",") + last);
    note_typed(result_.back(),
               first.empty() ? "--decoder-last-pipeline-num-layers" : "--decoder-first-pipeline-num-layers");
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

  void read_graphs(const std::string& flag, const std::string& implementation) {
    const std::optional<CudaGraphs> graphs = graphs_by(implementation);
    if (!graphs) {
      problems_.push_back({flag, "must be none, layers, local, transformer_engine or full_iteration, not '" +
                                     implementation + "'"});
    } else if (graphs_ && graphs_ != graphs) {
      problems_.push_back({flag, "contradicts the flag of CUDA graphs before it"});
    }
    graphs_ = graphs;
  }

  // One after another, or behind each other with commas between them.
  void read_graph_scope(const std::string& flag, const std::string& words) {
    const auto is_known = [](const std::string& word) {
      return from_name<GraphModule>(word) || word == name_of(CudaGraphs::full_iteration) || word == "full";
    };
    for (const std::string& word : split_list(words)) {
      if (!is_known(word))
        problems_.push_back(
            {flag, "must be some of " + graph_modules() + ", or full_iteration, not '" + word + "'"});
      graph_scope_.push_back(word);
    }
    while (next_ < arguments_.size() && is_known(arguments_[next_]))
      graph_scope_.push_back(arguments_[next_++]);
  }

  void write_graphs() {
    const RecordedGraphs recorded = recorded_graphs(graphs_, graph_scope_);
    if (recorded.graphs)
      result_.push_back("--set-software=cuda_graphs=" + std::string(name_of(*recorded.graphs)));
    if (!recorded.modules.empty())
      result_.push_back("--set-software=cuda_graph_modules=" + joined(recorded.modules, ","));
  }

  // Of the type flex alone, which another flag asks for.
  void read_backend(const std::string& flag, const std::string& name) {
    const std::optional<Dispatcher> backend = from_name<Dispatcher>(name);
    if (!backend || !sends_once_to_each_rank(*backend) || name == "flex")
      problems_.push_back({flag, "must be deepep, hybridep or ncclep, not '" + name + "'"});
    backend_ = name;
  }

  void write_backend() {
    constexpr std::string_view dispatcher = "--moe-dispatcher";
    if (backend_.empty()) return;
    bool named = false;
    for (std::size_t i = 0; i < result_.size(); ++i) {
      named = named || result_[i].starts_with(dispatcher);
      if (result_[i] == "--moe-dispatcher=flex") result_[i] = "--moe-dispatcher=" + backend_;
      if (result_[i] == dispatcher && i + 1 < result_.size() && result_[i + 1] == "flex")
        result_[i + 1] = backend_;
    }
    if (!named) result_.push_back("--moe-dispatcher=" + backend_);
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

  std::map<std::string, std::string> typed_;
  std::optional<std::string> first_rank_;  // layers
  std::optional<std::string> last_rank_;
  std::string backend_;
  const std::vector<std::string>& arguments_;
  std::size_t next_ = 0;
  std::vector<std::string> result_;
  std::optional<CudaGraphs> graphs_;
  std::vector<std::string> graph_scope_;
  std::vector<Problem> problems_;
};

}  // namespace

std::string rule_of_varied(const std::string& field) {
  std::string flag = "--" + field;
  std::replace(flag.begin(), flag.end(), '_', '-');
  if (const Unmodelled* const none = find_row(unmodelled, flag))
    return "is not modelled yet: " + std::string(none->what);
  if (const Unplanned* const idle = find_row(unplanned, flag)) return rule_of(*idle);
  if (const std::string_view key = key_called(field); !key.empty())
    return "is '" + std::string(key) + "' here";
  return {};
}

OwnNames in_own_names(const std::vector<std::string>& arguments,
                      const std::function<bool(const std::string& flag)>& known) {
  return Translation(arguments).run(known);
}

}  // namespace headroom::cli
