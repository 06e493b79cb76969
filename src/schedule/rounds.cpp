#include "headroom/schedule/rounds.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "headroom/core/expects.hpp"

namespace headroom {
namespace {

constexpr RoundMove forward_of(std::int64_t chunk) { return {.pass = Pass::forward, .chunk = chunk}; }
constexpr RoundMove inputs_of(std::int64_t chunk) { return {.pass = Pass::backward, .chunk = chunk}; }
constexpr RoundMove weights_of(std::int64_t chunk) { return {.pass = Pass::backward_weight, .chunk = chunk}; }
constexpr RoundMove backward_of(std::int64_t chunk) {
  return {.pass = Pass::backward, .chunk = chunk, .whole = true};
}

// Collects the rounds of a rank. Weight-gradient passes that no move names run in the order of the backward
// passes that left them.
class RoundList {
 public:
  void add(std::int64_t times, std::vector<RoundMove> moves) {
    if (times > 0) rounds_.push_back({times, std::move(moves)});
  }
  void inputs(std::int64_t chunk) {
    add(1, {inputs_of(chunk)});
    left_.push_back(chunk);
  }
  void oldest_weights() {
    EXPECTS(!left_.empty());
    add(1, {weights_of(left_.front())});
    left_.pop_front();
  }
  [[nodiscard]] std::vector<Round> take() {
    EXPECTS(left_.empty());
    return std::move(rounds_);
  }

 private:
  std::vector<Round> rounds_;
  std::deque<std::int64_t> left_;  // chunks with pending weight gradients
};

}  // namespace

std::vector<Round> zero_bubble_v_rounds(std::int64_t ranks, std::int64_t microbatches, std::int64_t rank) {
  EXPECTS(rank >= 0 && rank < ranks && microbatches > 0);
  const std::int64_t n = std::max(2 * ranks - 1, microbatches);
  const std::int64_t after = ranks - rank;  // this rank and the ranks after it
  const std::vector<RoundMove> second_chunk{forward_of(1), inputs_of(1), weights_of(1)};
  std::vector<RoundMove> both{inputs_of(0), weights_of(0)};
  both.insert(both.end(), second_chunk.begin(), second_chunk.end());

  RoundList list;
  list.add(2 * after - 1, {forward_of(0)});
  list.add(rank, {forward_of(1), forward_of(0)});
  list.add(after, second_chunk);
  const std::int64_t forwards_left = n - (2 * ranks - rank - 1);  // of the first chunk
  const std::int64_t rounds = n - ranks;  // each has a forward pass through the second chunk
  std::vector<RoundMove> with_forward{forward_of(0)};
  with_forward.insert(with_forward.end(), both.begin(), both.end());
  list.add(forwards_left, with_forward);
  list.add(rounds - forwards_left, both);
  list.add(rank, {inputs_of(0), inputs_of(1)});
  list.add(after, {inputs_of(0), weights_of(0)});
  list.add(rank, {weights_of(1)});
  list.add(rank, {weights_of(0)});
  return list.take();
}

std::vector<Round> dualpipe_rounds(std::int64_t ranks, std::int64_t microbatches, std::int64_t rank) {
  EXPECTS(rank >= 0 && rank < ranks && microbatches >= 2 * ranks);
  const std::int64_t after = ranks - rank - 1;
  // Returns a forward pass of a chunk that overlaps with a backward pass of the other chunk.
  const auto beside = [](std::int64_t chunk) {
    RoundMove forward = forward_of(chunk);
    RoundMove backward = backward_of(1 - chunk);
    forward.beside = backward.beside = true;
    return std::vector<RoundMove>{forward, backward};
  };
  std::vector<RoundMove> pairs = beside(0);
  const std::vector<RoundMove> second = beside(1);
  pairs.insert(pairs.end(), second.begin(), second.end());

  RoundList list;
  list.add(2 * after, {forward_of(0)});
  list.add(rank + 1, {forward_of(0), forward_of(1)});
  list.add(after, {inputs_of(1), weights_of(1), forward_of(1)});
  std::int64_t main_rounds = microbatches - 2 * ranks + rank + 1;
  if (after == 0) {  // at the turn, the first pair does not overlap, which shrinks the bubble
    std::vector<RoundMove> apart{forward_of(0), backward_of(1)};
    apart.insert(apart.end(), second.begin(), second.end());
    list.add(1, apart);
    --main_rounds;
  }
  list.add(main_rounds, pairs);
  std::vector<RoundMove> closing{backward_of(1)};
  closing.insert(closing.end(), second.begin(), second.end());
  list.add(after, closing);
  // The second half of the remaining backward passes has separate weight-gradient passes, which run while
  // ranks would wait for each other.
  bool apart = false;
  const auto backward = [&](std::int64_t chunk) {
    if (apart) {
      list.inputs(chunk);
    } else {
      list.add(1, {backward_of(chunk)});
    }
  };
  for (std::int64_t i = 0; i <= rank; ++i) {
    const bool middle = i == (rank + 1) / 2;
    if (middle && rank % 2 == 1) apart = true;
    backward(1);
    if (middle && rank % 2 == 0) apart = true;
    backward(0);
  }
  for (std::int64_t i = 0; i < after; ++i) {
    list.oldest_weights();
    backward(0);
  }
  for (std::int64_t i = 0; i <= rank; ++i) list.oldest_weights();
  return list.take();
}

}  // namespace headroom
