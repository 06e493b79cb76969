#include "headroom/search/lightest_stages.hpp"

#include <algorithm>
#include <limits>

#include "headroom/core/counts.hpp"
#include "headroom/core/expects.hpp"

namespace headroom {
namespace {

constexpr double no_cut = std::numeric_limits<double>::infinity();

// Cuts the stages of one chunk.
class ChunkCut {
 public:
  ChunkCut(std::int64_t layers, std::int64_t ranks, std::int64_t chunk, const StageLoad& load)
      : layers_(layers), ranks_(ranks), first_stage_(chunk * ranks), load_(load) {}

  // Returns, by boundary, the least load of the chunk's heaviest stage if the chunk holds the layers from `from`
  // up to there.
  [[nodiscard]] std::vector<double> heaviest(std::int64_t from) const {
    std::vector<double> least(index(layers_ + 1), no_cut);
    least[index(from)] = 0;
    for (std::int64_t rank = 0; rank < ranks_; ++rank) {
      std::vector<double> next(least.size(), no_cut);
      for (std::int64_t end = from; end <= layers_; ++end) {
        double& best = next[index(end)];
        visit_firsts(rank, from, end, [&](std::int64_t first, double load) {
          best = std::min(best, std::max(least[index(first)], load));
          return load < best;
        });
      }
      least = std::move(next);
    }
    return least;
  }

  // Appends the layers of the chunk's stages, which hold the layers from `from` up to `to`: the least sum of
  // squares of loads, none above `most`.
  void append_evenest(std::int64_t from, std::int64_t to, double most,
                      std::vector<std::int64_t>& layers) const {
    struct Cut {
      double squares = no_cut;
      std::int64_t first = 0;  // of the last stage
    };
    std::vector<std::vector<Cut>> cuts(index(ranks_ + 1), std::vector<Cut>(index(layers_ + 1)));
    cuts.front()[index(from)].squares = 0;
    for (std::int64_t rank = 0; rank < ranks_; ++rank) {
      for (std::int64_t end = from; end <= to; ++end) {
        Cut& best = cuts[index(rank + 1)][index(end)];
        visit_firsts(rank, from, end, [&](std::int64_t first, double load) {
          const double squares = cuts[index(rank)][index(first)].squares + load * load;
          if (load <= most && squares < best.squares) best = {squares, first};
          return load <= most;
        });
      }
    }
    const std::size_t begin = layers.size();
    for (std::int64_t rank = ranks_; rank > 0; --rank) {
      const std::int64_t first = cuts[index(rank)][index(to)].first;
      layers.insert(layers.begin() + static_cast<std::ptrdiff_t>(begin), to - first);
      to = first;
    }
  }

 private:
  // Calls visit(first, load) for the stage of a rank that ends at `end`, from none to ever more layers, as long
  // as they are allowed and visit() returns true.
  template <class Visit>
  void visit_firsts(std::int64_t rank, std::int64_t from, std::int64_t end, Visit visit) const {
    for (std::int64_t first = end; first >= from; --first) {
      const std::optional<double> load = load_(first_stage_ + rank, first, end);
      if (!load && first < end) return;
      if (load && !visit(first, *load)) return;
    }
  }

  std::int64_t layers_;
  std::int64_t ranks_;
  std::int64_t first_stage_;
  const StageLoad& load_;
};

}  // namespace

std::optional<std::vector<std::int64_t>> lightest_stages(std::int64_t layers, std::int64_t ranks,
                                                         std::int64_t chunks, const StageLoad& load) {
  EXPECTS(layers >= 1 && ranks >= 1 && chunks >= 1);
  struct Sum {
    double sum = no_cut;
    std::int64_t from = 0;  // first layer of the last chunk
    double heaviest = 0;    // stage of the last chunk
  };
  std::vector<std::vector<Sum>> sums(index(chunks + 1), std::vector<Sum>(index(layers + 1)));
  sums.front().front().sum = 0;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const ChunkCut cut(layers, ranks, chunk, load);
    for (std::int64_t from = 0; from <= layers; ++from) {
      const double before = sums[index(chunk)][index(from)].sum;
      if (before == no_cut) continue;
      const std::vector<double> heaviest = cut.heaviest(from);
      for (std::int64_t to = from; to <= layers; ++to) {
        Sum& best = sums[index(chunk + 1)][index(to)];
        const double sum = before + heaviest[index(to)];
        if (sum < best.sum) best = {sum, from, heaviest[index(to)]};
      }
    }
  }
  if (sums.back().back().sum == no_cut) return std::nullopt;
  std::vector<std::int64_t> result;
  std::int64_t to = layers;
  for (std::int64_t chunk = chunks; chunk > 0; --chunk) {
    const Sum& last = sums[index(chunk)][index(to)];
    std::vector<std::int64_t> of_chunk;
    ChunkCut(layers, ranks, chunk - 1, load).append_evenest(last.from, to, last.heaviest, of_chunk);
    result.insert(result.begin(), of_chunk.begin(), of_chunk.end());
    to = last.from;
  }
  return result;
}

}  // namespace headroom
