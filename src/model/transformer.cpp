#include "headroom/model/transformer.hpp"

namespace headroom {

std::int64_t padded_vocabulary(const Transformer& model, std::int64_t tensor_parallel) {
  const std::int64_t multiple = model.vocabulary_multiple * tensor_parallel;
  return (model.vocabulary + multiple - 1) / multiple * multiple;
}

}  // namespace headroom
