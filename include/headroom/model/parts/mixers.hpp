// Table of the mixers that replace attention in a layer. Other code asks this table and names no mixer.
//
// A new mixer has these files:
//   model/parts/NAME.hpp      its sizes as a struct, and a MixerRow (parts/part.hpp)
//   model/parts/NAME_ops.hpp  ValueId mixer_ops(OpBuilder&, const NAME&, ValueId input), which adds its rows
//   model/parts/NAME.cpp      what its kernels move, if it has a scan
//
// and changes these:
//   1. this file: a member of Mixers and a line of for_each_mixer();
//   2. model/layer_ops.hpp: the include of its rows;
//   3. CMakeLists.txt: its source, if it has one;
//   4. expr/symbol.hpp and expr/expr.hpp, if a size is none of the letters H, P, G and S.
#pragma once

#include "headroom/model/parts/gated_delta_net.hpp"
#include "headroom/model/parts/kimi_delta.hpp"
#include "headroom/model/parts/lightning.hpp"
#include "headroom/model/parts/mamba.hpp"
#include "headroom/model/parts/mamba1.hpp"
#include "headroom/model/parts/short_conv.hpp"

namespace headroom {

// The mixer of a layer, at most one. A layer without one has attention.
struct Mixers {
  std::optional<Mamba> mamba{};
  std::optional<GatedDeltaNet> gated_delta_net{};
  std::optional<KimiDelta> kimi_delta{};
  std::optional<Lightning> lightning{};
  std::optional<Mamba1> mamba1{};
  std::optional<ShortConv> short_conv{};
  friend bool operator==(const Mixers&, const Mixers&) = default;
};

// Calls `visit` with the row of each mixer and its member of Mixers.
template <class Visit>
constexpr void for_each_mixer(Visit visit) {
  visit(mamba_row, &Mixers::mamba);
  visit(gated_delta_net_row, &Mixers::gated_delta_net);
  visit(kimi_delta_row, &Mixers::kimi_delta);
  visit(lightning_row, &Mixers::lightning);
  visit(mamba1_row, &Mixers::mamba1);
  visit(short_conv_row, &Mixers::short_conv);
}

// Calls `visit` with the row and the sizes of the layer's mixer, if it has one.
template <class Visit>
constexpr void with_mixer(const Mixers& mixers, Visit visit) {
  for_each_mixer([&](const auto& row, auto member) {
    if (const auto& mixer = mixers.*member) visit(row, *mixer);
  });
}

constexpr bool has_mixer(const Mixers& mixers) {
  bool has = false;
  with_mixer(mixers, [&](const auto&, const auto&) { has = true; });
  return has;
}

constexpr bool reads_batch_first(const Mixers& mixers) {
  bool first = false;
  with_mixer(mixers, [&](const auto& row, const auto&) { first = row.batch_first; });
  return first;
}

// Returns the size that a letter stands for, or 0 if the mixer has none.
constexpr std::int64_t mixer_size(const Mixers& mixers, Symbol letter) {
  std::int64_t size = 0;
  with_mixer(mixers, [&](const auto& row, const auto& mixer) {
    for (const auto& it : row.sizes) {
      if (it.letter == letter) size = mixer.*it.member;
    }
  });
  return size;
}

// Calls `visit` with each letter of any mixer.
template <class Visit>
constexpr void for_each_mixer_letter(Visit visit) {
  for_each_mixer([&](const auto& row, auto) {
    for (const auto& it : row.sizes) {
      if (it.letter) visit(*it.letter);
    }
  });
}

// Returns one list of all mixers, concatenated. A name that several mixers share is in it once.
template <class T, class List>
constexpr FixedVector<T, 16> listed_by_mixers(List list) {
  FixedVector<T, 16> all;
  for_each_mixer([&](const auto& row, auto) {
    for (const T& it : list(row)) {
      bool known = false;
      for (const T& other : all) known = known || other.name == it.name;
      if (!known) all.push_back(it);
    }
  });
  return all;
}

inline constexpr auto linears_of_mixers =
    listed_by_mixers<LinearGroup>([](const auto& row) { return row.linears; });
inline constexpr auto lora_targets_of_mixers =
    listed_by_mixers<LoraTarget>([](const auto& row) { return row.lora_targets; });
inline constexpr auto adapters_of_mixers =
    listed_by_mixers<AdapterNames>([](const auto& row) { return row.adapters; });
inline constexpr auto recompute_modules_of_mixers = listed_by_mixers<RecomputeModule>(
    [](const auto& row) { return FixedVector<RecomputeModule, 1>{row.recompute}; });

// Returns an array followed by the list of all mixers.
template <class T, std::size_t N, std::size_t M>
constexpr auto with_those_of_mixers(const std::array<T, N>& own, const FixedVector<T, M>& of_mixers) {
  FixedVector<T, N + M> all;
  for (const T& row : own) all.push_back(row);
  for (const T& row : of_mixers) all.push_back(row);
  return all;
}

}  // namespace headroom
