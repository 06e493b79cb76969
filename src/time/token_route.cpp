#include "token_route.hpp"

#include "headroom/core/counts.hpp"
#include "headroom/parallel/sharding.hpp"
#include "headroom/parallel/strategy_layers.hpp"

namespace headroom {
namespace {

bool sends_once_to_each_rank(const Collective& collective) {
  return collective.bytes.power(Symbol::expert_ranks_per_token) != 0;
}

double tokens_of_rank(const Setting& setting) {
  const Monomial tokens =
      of_own_tokens(symbols::s * symbols::b, setting.sharding) * share(Placement::boundary, setting.sharding);
  return tokens.evaluate(setting.letters);
}

}  // namespace

Bytes routing_map_bytes(const Collective& collective, const Group& group, const Setting& setting) {
  if (setting.dispatcher != Dispatcher::hybridep || collective.name != Conjugate::dispatch ||
      !sends_once_to_each_rank(collective) || group.ranks == 1)
    return Bytes(0);
  return Bytes(tokens_of_rank(setting) * real(group.ranks) * setting.letters[Symbol::experts]);
}

TokenRoutes token_routes(const Collective& collective, const Group& group, const Setting& setting) {
  if (!sends_once_to_each_rank(collective)) return {};
  const Bindings& letters = setting.letters;
  const double nodes = real(group.ranks) / real(group.ranks_in_node);
  TokenRoute route{.nodes_of_ranks =
                       parts_per_token(letters, nodes) / letters[Symbol::expert_ranks_per_token]};
  const CollectiveRates& rates = setting.performance.rates.collectives;
  const bool sends = collective.name == Conjugate::dispatch;
  const std::optional<HybridEpRates>& hybridep =
      group.ranks > group.ranks_in_node ? rates.hybridep_over_nodes : rates.hybridep;
  if (setting.dispatcher == Dispatcher::hybridep && hybridep) {
    const auto at = [&](const Sourced<BytesPerSecond>& bandwidth) {
      TokenRoute result = route;
      result.from_others = bandwidth.value;
      return result;
    };
    const TokenRoute dispatched = at(hybridep->dispatch_bandwidth);
    const TokenRoute combined = at(hybridep->combine_bandwidth);
    return sends ? TokenRoutes{dispatched, combined} : TokenRoutes{combined, dispatched};
  }
  const std::optional<DeepEpRates>& deepep = rates.deepep;
  if (setting.dispatcher != Dispatcher::deepep || !deepep) return {route, route};
  route.tokens = tokens_of_rank(setting);
  const auto by = [&](const TokenKernelRates& kernel) {
    TokenRoute result = route;
    result.kernel = &kernel;
    return result;
  };
  return {by(sends ? deepep->dispatch : deepep->combine), by(sends ? deepep->combine : deepep->dispatch)};
}

}  // namespace headroom
