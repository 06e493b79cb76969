// Communication of op tables: kinds of collectives, pairs of collectives in the forward and backward pass,
// and the exchanges that a row requests itself.
//
//   f         forward nothing,        backward all-reduce
//   f_bar     forward all-reduce,     backward nothing
//   g         forward all-gather,     backward reduce-scatter
//   g_bar     forward reduce-scatter, backward all-gather
//   dispatch  all-to-all, both ways, before an op
//   combine   all-to-all, both ways, after it
//   gather    forward all-gather,     backward nothing
//   scatter   forward nothing,        backward all-gather, after an op: each rank goes on with its shard of a
//             value that all ranks hold whole
//   sums      all-reduce, both ways, before an op: for statistics over parts on several ranks
//   pass_on   ring, before an op: every rank's part passes all other ranks; so do gradients
//
// A row that relates all tokens of a sequence names the inputs that it needs of all tokens
// (Op::of_all_tokens). CpComm determines what context parallelism exchanges for it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "headroom/core/axis.hpp"
#include "headroom/core/dtype.hpp"

namespace headroom {

// Kind of a collective. all_to_all: each rank sends a part to every other rank. send_receive: a rank sends to
// its neighbour. ring: ranks send to their neighbour until every part has passed every rank. pipeline_send: a
// PP rank sends to the next or the previous one, at the same time as all ranks that share its stage.
enum class CollectiveKind : std::uint8_t {
  none,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  send_receive,
  pipeline_send,
  ring,
};

enum class Conjugate : std::uint8_t { f, f_bar, g, g_bar, dispatch, combine, pass_on, gather, sums, scatter };

struct ConjugateRow {
  Conjugate name;
  std::string_view text;
  CollectiveKind forward;
  CollectiveKind backward;
  bool enters;  // stands before its op; otherwise after it
};

inline constexpr std::array<ConjugateRow, 10> conjugates{{
    {Conjugate::f, "f", CollectiveKind::none, CollectiveKind::all_reduce, true},
    {Conjugate::f_bar, "f_bar", CollectiveKind::all_reduce, CollectiveKind::none, false},
    {Conjugate::g, "g", CollectiveKind::all_gather, CollectiveKind::reduce_scatter, true},
    {Conjugate::g_bar, "g_bar", CollectiveKind::reduce_scatter, CollectiveKind::all_gather, false},
    {Conjugate::dispatch, "dispatch", CollectiveKind::all_to_all, CollectiveKind::all_to_all, true},
    {Conjugate::combine, "combine", CollectiveKind::all_to_all, CollectiveKind::all_to_all, false},
    {Conjugate::pass_on, "pass_on", CollectiveKind::ring, CollectiveKind::ring, true},
    {Conjugate::gather, "gather", CollectiveKind::all_gather, CollectiveKind::none, true},
    {Conjugate::sums, "sums", CollectiveKind::all_reduce, CollectiveKind::all_reduce, true},
    {Conjugate::scatter, "scatter", CollectiveKind::none, CollectiveKind::all_gather, false},
}};

constexpr const ConjugateRow& row_of(Conjugate name) { return conjugates[static_cast<std::size_t>(name)]; }
constexpr bool enters(Conjugate name) { return row_of(name).enters; }
constexpr CollectiveKind forward_kind(Conjugate name) { return row_of(name).forward; }
constexpr CollectiveKind backward_kind(Conjugate name) { return row_of(name).backward; }

// Communication of CP ranks, which each hold a part of every sequence, to attend to all of it [Transformer
// Engine, attention/dot_product_attention/context_parallel.py; Megatron-LM, --cp-comm-type]. p2p: keys and
// values travel round a ring, overlapped with attention to the previous ones. all_gather: keys and values are
// gathered. a2a: ranks exchange parts of the tokens for parts of the heads, and back (DeepSpeed-Ulysses).
// a2a_p2p: a2a within parts of the group, which form a ring.
enum class CpComm : std::uint8_t { p2p, all_gather, a2a, a2a_p2p };

// Dispatch of tokens to experts [Megatron-LM, --moe-token-dispatcher-type]. alltoall: sends one copy to each
// expert. allgather: every rank that shares the experts receives all tokens, and sums over ranks return the
// experts' output. deepep, hybridep: send a token once to each rank that holds any of its experts (type flex,
// --moe-flex-dispatcher-backend).
enum class Dispatcher : std::uint8_t { alltoall, allgather, deepep, hybridep };

constexpr bool sends_once_to_each_rank(Dispatcher dispatcher) {
  return dispatcher == Dispatcher::deepep || dispatcher == Dispatcher::hybridep;
}
// Returns whether tokens arrive padded to the multiples that the experts' GEMMs need [token_dispatcher.py,
// _HybridEPManager].
constexpr bool sends_padded(Dispatcher dispatcher) { return dispatcher == Dispatcher::hybridep; }

// Returns the multiprocessors that a dispatcher's kernels hold while they run; 0: its kernels are NCCL's
// [DeepEP, deep_ep/buffers/legacy.py, num_sms; Megatron-Core, transformer_config.py, moe_deepep_num_sms and
// moe_hybridep_num_sms].
constexpr std::int64_t multiprocessors_of(Dispatcher dispatcher) {
  switch (dispatcher) {
    case Dispatcher::deepep: return 20;
    case Dispatcher::hybridep: return 16;
    case Dispatcher::alltoall:
    case Dispatcher::allgather: break;
  }
  return 0;
}

// A value that a row sends through the group of an axis, if the run has that axis. Collectives of tensor
// parallelism are not exchanges: they follow from placements (parallel/collectives.hpp). Model ends that are
// whole on each rank are the exception.
struct Exchange {
  ParallelAxis axis = ParallelAxis::expert;
  Conjugate name = Conjugate::dispatch;
  int value = -1;                            // received if it precedes the op, sent if it follows
  std::optional<Dtype> dtype = {};           // of the transfer, if not the value's
  std::optional<Dtype> backward_dtype = {};  // of the backward pass's, if another
  friend bool operator==(const Exchange&, const Exchange&) = default;
};

template <>
inline constexpr std::array<Spelling<CollectiveKind>, 8> spellings<CollectiveKind>{{
    {CollectiveKind::none, "none"},
    {CollectiveKind::all_reduce, "all_reduce"},
    {CollectiveKind::all_gather, "all_gather"},
    {CollectiveKind::reduce_scatter, "reduce_scatter"},
    {CollectiveKind::all_to_all, "all_to_all"},
    {CollectiveKind::send_receive, "send_receive"},
    {CollectiveKind::pipeline_send, "pipeline_send"},
    {CollectiveKind::ring, "ring"},
}};
template <>
inline constexpr std::array<Spelling<CpComm>, 5> spellings<CpComm>{{
    {CpComm::p2p, "p2p"},
    {CpComm::all_gather, "all_gather"},
    {CpComm::a2a, "a2a"},
    {CpComm::a2a_p2p, "a2a_p2p"},
    {CpComm::a2a_p2p, "a2a+p2p"},
}};
template <>
inline constexpr std::array<Spelling<Dispatcher>, 4> spellings<Dispatcher>{{
    {Dispatcher::alltoall, "alltoall"},
    {Dispatcher::allgather, "allgather"},
    {Dispatcher::deepep, "deepep"},
    {Dispatcher::hybridep, "hybridep"},
}};
// Other names: those of collectives, Megatron-LM's type flex (default backend deepep), and flex's third
// backend, ncclep, which sends as HybridEP does.
template <>
inline constexpr std::array<Spelling<Dispatcher>, 5> other_spellings<Dispatcher>{{
    {Dispatcher::alltoall, "all_to_all"},
    {Dispatcher::alltoall, "a2a"},
    {Dispatcher::allgather, "all_gather"},
    {Dispatcher::deepep, "flex"},
    {Dispatcher::hybridep, "ncclep"},
}};
template <>
inline constexpr std::array<Spelling<Conjugate>, 10> spellings<Conjugate>{{
    {Conjugate::f, conjugates[0].text},
    {Conjugate::f_bar, conjugates[1].text},
    {Conjugate::g, conjugates[2].text},
    {Conjugate::g_bar, conjugates[3].text},
    {Conjugate::dispatch, conjugates[4].text},
    {Conjugate::combine, conjugates[5].text},
    {Conjugate::pass_on, conjugates[6].text},
    {Conjugate::gather, conjugates[7].text},
    {Conjugate::sums, conjugates[8].text},
    {Conjugate::scatter, conjugates[9].text},
}};

}  // namespace headroom
