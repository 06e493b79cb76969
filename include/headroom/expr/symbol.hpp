// The notation: one letter for each quantity, as in table 1 of K22 if the paper has one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headroom {

// Symbols in the order in which a product is written: "a s^2 b", "s b h L".
enum class Symbol : std::uint8_t {
  global_batch,
  heads,
  key_value_heads,
  experts,
  experts_per_token,
  expert_ranks_per_token,
  expert_groups,
  expert_groups_per_token,
  imbalance,
  sequence,
  keys_met,
  keys_in_chunk,
  micro_batch,
  hidden,
  query_rank,
  key_value_rank,
  head_size,
  plain_head_size,
  rotary_head_size,
  value_head_size,
  recurrent_heads,
  recurrent_head_size,
  recurrent_groups,
  recurrent_state_size,
  feedforward,
  expert_feedforward,
  expert_latent,
  shared_feedforward,
  vocabulary,
  max_positions,
  layers,
  microbatches,
  data_parallel,
  virtual_pipeline,
  pipeline_parallel,
  tensor_parallel,
  context_parallel,
  context_inner,
  expert_parallel,
  expert_tensor_parallel,
};

inline constexpr std::size_t symbol_count = 40;

struct Notation {
  Symbol symbol;
  char letter;
  std::string_view meaning;
};

inline constexpr std::array<Notation, symbol_count> notation{{
    {Symbol::global_batch, 'B', "sequences per iteration"},
    {Symbol::heads, 'a', "attention heads"},
    {Symbol::key_value_heads, 'k', "key/value heads"},
    {Symbol::experts, 'E', "routed experts of a layer"},
    {Symbol::experts_per_token, 'q', "experts that a token goes to"},
    {Symbol::expert_ranks_per_token, 'r', "copies of a token that dispatch sends"},
    {Symbol::expert_groups, 'N', "groups of experts"},
    {Symbol::expert_groups_per_token, 'M', "groups of them that a token goes to at most"},
    {Symbol::imbalance, 'I', "load of the fullest expert rank, times the mean"},
    {Symbol::sequence, 's', "sequence length, tokens"},
    {Symbol::keys_met, 'o', "keys that a query of a window meets, a causal mask counted whole"},
    {Symbol::keys_in_chunk, 'C',
     "keys that a query meets in its chunk of the sequence, a causal mask counted whole"},
    {Symbol::micro_batch, 'b', "microbatch size, sequences"},
    {Symbol::hidden, 'h', "hidden size"},
    {Symbol::query_rank, 'R', "rank of latent queries"},
    {Symbol::key_value_rank, 'w', "rank of latent keys and values"},
    {Symbol::head_size, 'e', "size of one head"},
    {Symbol::plain_head_size, 'i', "size of a key without positions"},
    {Symbol::rotary_head_size, 'j', "size of a key with positions"},
    {Symbol::value_head_size, 'l', "size of a value"},
    {Symbol::recurrent_heads, 'H', "heads of a recurrent mixer"},
    {Symbol::recurrent_head_size, 'P', "size of one of them"},
    {Symbol::recurrent_groups, 'G', "groups of them, whose heads share B and C"},
    {Symbol::recurrent_state_size, 'S', "numbers of the state of each channel"},
    {Symbol::feedforward, 'f', "feed-forward width"},
    {Symbol::expert_feedforward, 'g', "width of an expert"},
    {Symbol::expert_latent, 'D', "width of the latent tokens that experts read"},
    {Symbol::shared_feedforward, 'u', "width of the shared experts"},
    {Symbol::vocabulary, 'v', "vocabulary size, padded"},
    {Symbol::max_positions, 'x', "rows of the position table"},
    {Symbol::layers, 'L', "transformer layers"},
    {Symbol::microbatches, 'n', "microbatches per pipeline and iteration"},
    {Symbol::data_parallel, 'd', "data-parallel size"},
    {Symbol::virtual_pipeline, 'm', "interleaving stages"},
    {Symbol::pipeline_parallel, 'p', "pipeline-parallel size"},
    {Symbol::tensor_parallel, 't', "tensor-parallel size"},
    {Symbol::context_parallel, 'c', "context-parallel size"},
    {Symbol::context_inner, 'U', "context-parallel ranks that share heads"},
    {Symbol::expert_parallel, 'y', "expert-parallel size"},
    {Symbol::expert_tensor_parallel, 'z', "tensor-parallel size of experts"},
}};

constexpr std::size_t index_of(Symbol symbol) { return static_cast<std::size_t>(symbol); }

constexpr char letter_of(Symbol symbol) { return notation[index_of(symbol)].letter; }

}  // namespace headroom
