#include "headroom/model/transformer.hpp"

#include "headroom/core/counts.hpp"

namespace headroom {

std::int64_t padded_vocabulary(const Transformer& model, std::int64_t tensor_parallel) {
  const std::int64_t multiple = model.vocabulary_multiple * tensor_parallel;
  return round_up(model.vocabulary, multiple);
}

}  // namespace headroom
