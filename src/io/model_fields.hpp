// The members of a model file, and those that a kind of its layers may have of its own.
#pragma once

#include <fmt/format.h>

#include "headroom/model/transformer.hpp"
#include "object_reader.hpp"

namespace headroom {

// Upper limits far beyond any model, low enough that products of a few sizes stay within 64 bits.
inline constexpr Range widths{1, 1 << 22};
inline constexpr Range head_counts{1, 1 << 16};
inline constexpr Range layer_counts{1, most_layers};
inline constexpr Range token_counts{1, 1 << 28};
inline constexpr std::int64_t most_mtp_layers = 64;

constexpr bool is_mask(Dtype dtype) { return dtype == Dtype::boolean || is_floating(dtype); }
inline constexpr OneOf floating{dtypes_that<is_floating>};
inline constexpr OneOf mask{dtypes_that<is_mask>};

inline constexpr auto kernel_fields = [](auto& fields, auto& kernels) {
  fields.optional("attention", kernels.attention);
  fields.optional("softmax", kernels.softmax);
  fields.optional("activation", kernels.activation);
  fields.optional("clamp", kernels.clamp);
  fields.optional("expert_bias", kernels.expert_bias);
  fields.optional("normalization", kernels.normalization);
  fields.optional("rotary", kernels.rotary);
  fields.optional("cross_entropy", kernels.cross_entropy);
  fields.optional("qkv", kernels.qkv);
  fields.optional("kv_sharing", kernels.kv_sharing);
  fields.optional("layout", kernels.layout);
  fields.optional("softmax_dtype", kernels.softmax_dtype, floating);
  fields.optional("residual_dtype", kernels.residual_dtype, floating);
  fields.optional("norm_statistics", kernels.norm_statistics, floating);
  fields.optional("dropout_mask", kernels.dropout_mask, mask);
  fields.optional("logits", kernels.logits, floating);
  fields.optional("weight_copies", kernels.weight_copies);
};

inline constexpr auto expert_fields = [](auto& fields, auto& experts) {
  fields.required("count", experts.count, head_counts);
  fields.required("per_token", experts.per_token, head_counts);
  fields.optional("feedforward", experts.feedforward, widths);
  fields.optional("shared_feedforward", experts.shared_feedforward, Range{0, widths.most});
  fields.optional("shared_gate", experts.shared_gate);
  fields.optional("groups", experts.groups, head_counts);
  fields.optional("groups_per_token", experts.groups_per_token, Range{0, head_counts.most});
  fields.optional("latent", experts.latent, Range{0, widths.most});
  fields.optional("scores", experts.scores);
  fields.optional("auxiliary_loss", experts.auxiliary_loss);
  fields.optional("router_dtype", experts.router_dtype, floating);
  fields.optional("weighting", experts.weighting);
  fields.optional("router_bias", experts.router_bias);
  fields.optional("scale_inputs", experts.scale_inputs);
  fields.optional("capacity_factor", experts.capacity_factor);
};

inline constexpr auto latent_fields = [](auto& fields, auto& latent) {
  fields.optional("q_rank", latent.q_rank, Range{0, widths.most});
  fields.required("kv_rank", latent.kv_rank, widths);
  fields.required("nope_head_size", latent.nope_head_size, widths);
  fields.required("rope_head_size", latent.rope_head_size, widths);
  fields.required("value_head_size", latent.value_head_size, widths);
};

inline constexpr auto mixer_fields = [](auto& fields, auto& mixers) {
  for_each_mixer([&](const auto& row, auto member) {
    fields.object(row.name, mixers.*member, [&](auto& of, auto& mixer) {
      for (const auto& size : row.sizes) {
        const Range range = size.is_width ? widths : head_counts;
        if (size.required) {
          of.required(size.word, mixer.*size.member, range);
        } else {
          of.optional(size.word, mixer.*size.member, range);
        }
      }
    });
  });
};

// What a layer is made of, beside its sizes.
inline constexpr auto architecture_fields = [](auto& fields, auto& architecture) {
  fields.optional("activation", architecture.activation);
  fields.optional("clamped_activation", architecture.clamped_activation);
  fields.optional("normalization", architecture.normalization);
  fields.optional("norm_bias", architecture.norm_bias);
  fields.optional("positions", architecture.positions);
  fields.optional("scaled_rotary", architecture.scaled_rotary);
  fields.optional("linear_bias", architecture.linear_bias);
  fields.optional("qkv_bias", architecture.qkv_bias);
  fields.optional("hidden_dropout", architecture.hidden_dropout);
  fields.optional("attention_dropout", architecture.attention_dropout);
  fields.optional("norm_position", architecture.norm_position);
  fields.optional("residual", architecture.residual);
  fields.optional("qk_norm", architecture.qk_norm);
  fields.optional("window", architecture.window, Range{0, token_counts.most});
  fields.optional("attention_chunk", architecture.attention_chunk, Range{0, token_counts.most});
  fields.optional("attention_sinks", architecture.attention_sinks);
  fields.optional("attention_softcap", architecture.attention_softcap);
  fields.optional("attention_gate", architecture.attention_gate);
  fields.object("latent_attention", architecture.latent_attention, latent_fields);
  mixer_fields(fields, architecture.mixers);
  fields.object("experts", architecture.experts, expert_fields);
  fields.optional("parts", architecture.parts);
};

inline constexpr auto model_fields = [](auto& fields, auto& model) {
  auto& architecture = model.architecture;
  fields.format(1);
  fields.required("source", model.source);
  fields.required("hidden", model.hidden, widths);
  fields.required("feedforward", model.feedforward, widths);
  fields.required("heads", model.heads, head_counts);
  fields.optional("key_value_heads", model.key_value_heads, head_counts);
  fields.optional("head_size", model.head_size, widths);
  fields.required("layers", model.layers, layer_counts);
  fields.required("vocabulary", model.vocabulary, token_counts);
  fields.optional("vocabulary_multiple", model.vocabulary_multiple, widths);
  fields.required("sequence", model.sequence, token_counts);
  fields.optional("max_positions", model.max_positions, token_counts);
  fields.optional("mtp_layers", model.mtp_layers, Range{0, most_mtp_layers});
  architecture_fields(fields, architecture);
  fields.optional("tied_embeddings", architecture.tied_embeddings);
  fields.optional("final_softcap", architecture.final_softcap);
  fields.object("kernels", architecture.kernels, kernel_fields);
};

// Of a kind of layer: what it does not say is as in the model.
inline constexpr auto layer_fields = [](auto& fields, auto& layer) {
  fields.optional("feedforward", layer.feedforward, widths);
  fields.optional("heads", layer.heads, head_counts);
  fields.optional("key_value_heads", layer.key_value_heads, head_counts);
  fields.optional("head_size", layer.head_size, widths);
  architecture_fields(fields, layer.architecture);
  fields.object("kernels", layer.architecture.kernels, kernel_fields);
};

// Gives the groups of a token's experts where the file leaves them out: all. A count that is zero was never read.
template <class Report>
void resolve_expert_groups(Experts& experts, const Report& report) {
  experts.groups_per_token = groups_per_token(experts);
  if (experts.count == 0 || experts.per_token == 0) return;
  if (experts.count % experts.groups != 0) {
    report("groups", fmt::format("must divide the experts ({} % {} = {})", experts.count, experts.groups,
                                 experts.count % experts.groups));
  } else if (experts.groups_per_token > experts.groups) {
    report("groups_per_token",
           fmt::format("must be at most the groups ({} > {})", experts.groups_per_token, experts.groups));
  } else if (const auto most = experts.groups_per_token * (experts.count / experts.groups);
             experts.per_token > most && experts.per_token <= experts.count) {
    report("per_token",
           fmt::format("must be at most the experts of the groups that a token goes to ({} > {})",
                       experts.per_token, most));
  }
}

// Gives the width of experts where the file leaves it out, and notes what cannot be.
template <class Layer>
void resolve_experts(Layer& layer, const JsonPointer& at, Document& document) {
  if (!layer.architecture.experts) return;
  Experts& experts = *layer.architecture.experts;
  if (experts.feedforward == 0) experts.feedforward = layer.feedforward;
  const auto report = [&](const char* field, std::string rule) {
    document.report(at / "experts" / field, std::move(rule));
  };
  if (experts.count > 0 && experts.per_token > experts.count) {
    report("per_token", fmt::format("must be at most count ({} > {})", experts.per_token, experts.count));
  }
  resolve_expert_groups(experts, report);
  if (experts.shared_gate && experts.shared_feedforward == 0) {
    report("shared_gate", "needs shared_feedforward, the width of what it gates");
  }
  if (layer.architecture.kernels.weight_copies) {
    report("count", "experts with kernels.weight_copies are not modelled yet");
  }
}

// Of latent attention. The size of a head of q and k follows from its two parts.
template <class Layer>
void resolve_latent_attention(Layer& layer, bool given_head_size, const JsonPointer& at, Document& document) {
  const Architecture& architecture = layer.architecture;
  if (!architecture.latent_attention) return;
  const LatentAttention& latent = *architecture.latent_attention;
  const auto report = [&](const char* field, std::string rule) {
    document.report(at / field, std::move(rule));
  };
  const std::int64_t size = latent.nope_head_size + latent.rope_head_size;
  if (!given_head_size) {
    layer.head_size = size;
  } else if (layer.head_size != size) {
    report("head_size", fmt::format("must be the sum of nope_head_size and rope_head_size ({} + {} = {})",
                                    latent.nope_head_size, latent.rope_head_size, size));
  }
  if (layer.heads != layer.key_value_heads) {
    report("key_value_heads",
           "must be as many as heads with latent_attention, which makes k and v of every head");
  }
  if (architecture.positions != Positions::rotary) {
    report("positions", "must be rotary with latent_attention, whose k has a part of its own for them");
  }
  if (architecture.qkv_bias) report("qkv_bias", "is not modelled with latent_attention: set it to false");
  if (architecture.qk_norm != QkNorm::none) {
    report("qk_norm", "is not modelled with latent_attention, whose latents are normalized");
  }
  if (architecture.attention_gate) report("attention_gate", "is not modelled with latent_attention");
  if (architecture.kernels.weight_copies) {
    report("latent_attention", "with kernels.weight_copies is not modelled yet");
  }
}

// The mixer that stands in place of attention. It is the one that is stated, or else what a kind has from the model.
template <class Given>
void resolve_mixers(Architecture& architecture, const Given& given, const JsonPointer& at,
                    Document& document) {
  const auto report = [&](std::string_view field, std::string rule) {
    document.report(at / std::string(field), std::move(rule));
  };
  for_each_mixer([&](const auto& row, auto) {
    if (!given(row.name)) return;
    for_each_mixer([&](const auto& other, auto member) {
      if (other.name == row.name || !(architecture.mixers.*member)) return;
      if (given(other.name))
        report(other.name, fmt::format("cannot be in a layer whose mixer is `{}`", row.name));
      (architecture.mixers.*member).reset();
    });
  });
  with_mixer(architecture.mixers, [&](const auto& row, const auto& mixer) {
    if (given("latent_attention"))
      report("latent_attention", fmt::format("cannot be in a layer whose mixer is `{}`", row.name));
    architecture.latent_attention.reset();
    for (const auto& multiple : row.multiples) {
      const std::int64_t of = mixer.*multiple.of;
      const std::int64_t unit = mixer.*multiple.unit;
      if (unit > 0 && of % unit != 0)
        report(row.name, fmt::format("{} ({} % {} = {})", multiple.rule, of, unit, of % unit));
    }
    if (architecture.kernels.weight_copies)
      report(row.name, "with kernels.weight_copies is not modelled yet");
  });
}

// Of layers of one part. Where a kind of layers is of another part than what it has from the model, it goes without
// that; what is stated beside the part is a mistake.
template <class Layer, class Given>
void resolve_parts(Layer& layer, const Given& given, const JsonPointer& at, Document& document) {
  Architecture& architecture = layer.architecture;
  const auto report = [&](std::string_view field, std::string rule) {
    document.report(at / std::string(field), std::move(rule));
  };
  if (architecture.parts == LayerParts::mixer) {
    if (given("experts")) report("experts", "needs `parts` both or mlp");
    architecture.experts.reset();
  }
  if (architecture.parts == LayerParts::mlp) {
    for_each_mixer([&](const auto& row, auto) {
      if (given(row.name)) report(row.name, "needs `parts` both or mixer");
    });
    if (given("latent_attention")) report("latent_attention", "needs `parts` both or mixer");
    architecture.mixers = {};
    architecture.latent_attention.reset();
  }
  if (architecture.parts != LayerParts::both && architecture.residual != ResidualForm::sequential) {
    report("parts", "must be both where `residual` has attention and MLP in parallel");
  }
  resolve_mixers(architecture, given, at, document);
}

// What goes with some activations and positions only.
template <class Layer>
void check_choices(const Layer& layer, const JsonPointer& at, Document& document) {
  const Architecture& architecture = layer.architecture;
  if (architecture.clamped_activation && !is_gated(architecture.activation)) {
    document.report(at / "clamped_activation", "needs a gated activation: swiglu or geglu");
  }
  if (architecture.scaled_rotary && architecture.positions != Positions::rotary) {
    document.report(at / "scaled_rotary", "needs rotary positions");
  }
  if (architecture.attention_chunk > 0 && architecture.window > 0) {
    document.report(at / "attention_chunk", "does not go with a window");
  }
}

// Of the model, or of a kind of its layers.
template <class Layer>
void check_heads(const Layer& layer, const JsonPointer& at, Document& document) {
  if (layer.heads > 0 && layer.key_value_heads > 0 && layer.heads % layer.key_value_heads != 0) {
    document.report(at / "heads",
                    fmt::format("must be divisible by key_value_heads ({} % {} = {})", layer.heads,
                                layer.key_value_heads, layer.heads % layer.key_value_heads));
  }
  if (layer.architecture.positions == Positions::rotary && layer.head_size % 2 != 0) {
    document.report(at / "head_size", fmt::format("must be even for rotary positions ({})", layer.head_size));
  }
}

}  // namespace headroom
