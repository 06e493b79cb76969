#include "token_route.hpp"

#include "headroom/core/counts.hpp"
#include "headroom/parallel/sharding.hpp"

namespace headroom {

TokenRoutes token_routes(const Collective& collective, const Group& group, const Setting& setting) {
  if (collective.bytes.power(Symbol::expert_ranks_per_token) == 0) return {};
  const Bindings& letters = setting.letters;
  const double nodes = real(group.ranks) / real(group.ranks_in_node);
  TokenRoute route{.nodes_of_ranks =
                       parts_per_token(letters, nodes) / letters[Symbol::expert_ranks_per_token]};
  const std::optional<DeepEpRates>& deepep = setting.performance.rates.collectives.deepep;
  if (setting.dispatcher != Dispatcher::deepep || !deepep) return {route, route};
  const Monomial tokens =
      of_own_tokens(symbols::s * symbols::b, setting.sharding) * share(Placement::boundary, setting.sharding);
  route.tokens = tokens.evaluate(letters);
  const auto by = [&](const TokenKernelRates& kernel) {
    TokenRoute result = route;
    result.kernel = &kernel;
    return result;
  };
  const bool sends = collective.name == Conjugate::dispatch;
  return {by(sends ? deepep->dispatch : deepep->combine), by(sends ? deepep->combine : deepep->dispatch)};
}

}  // namespace headroom
