#include "calibrate/network_words.hpp"

#include <algorithm>
#include <regex>
#include <string>

#include "headroom/core/counts.hpp"

namespace headroom {
namespace {

constexpr double bytes_of_gigabit = 1e9 / 8;
constexpr std::size_t longest_words = 400;  // regular expressions take stack for each letter

}  // namespace

std::optional<StatedNetwork> network_of_words(std::string_view words) {
  static const std::regex of_nics(R"((\d{1,2}) ?x ?(?:[A-Za-z][A-Za-z0-9-]* )?(\d{1,4}) ?Gb/s)");
  static const std::regex of_node(
      R"((\d{1,5}) ?Gb/s (?:[A-Za-z]+ )?(per node|a node|node-node|per GPU|a GPU))");
  const std::string text(words.substr(0, longest_words));
  std::smatch found;
  if (std::regex_search(text, found, of_nics)) {
    const StatedNetwork stated{.gigabits = std::stod(found[2]), .nics = std::stoll(found[1])};
    return stated.gigabits > 0 && *stated.nics > 0 ? std::optional(stated) : std::nullopt;
  }
  if (!std::regex_search(text, found, of_node)) return std::nullopt;
  const StatedNetwork stated{.gigabits = std::stod(found[1]), .of_device = found[2].str().ends_with("GPU")};
  return stated.gigabits > 0 ? std::optional(stated) : std::nullopt;
}

System system_of_run(System system, std::optional<std::int64_t> devices_per_node,
                     std::string_view interconnect) {
  if (system.devices_per_host) return system;
  if (devices_per_node) system.devices_per_node = std::min(system.devices_per_node, *devices_per_node);
  const std::optional<StatedNetwork> stated = network_of_words(interconnect);
  if (!stated || !system.performance) return system;
  Network& network = system.performance->network;
  const BytesPerSecond rate(stated->gigabits * bytes_of_gigabit);
  const double devices = real(system.devices_per_node);
  if (stated->of_device) {
    network.nics_per_device = 1;
    network.nic_bandwidth = rate;
  } else if (stated->nics) {
    network.nics_per_device = real(*stated->nics) / devices;
    network.nic_bandwidth = rate;
  } else {
    network.nics_per_device = std::max(rate / network.nic_bandwidth, 1.0) / devices;
    network.nic_bandwidth = std::min(rate, network.nic_bandwidth);
  }
  network.source = "As the run says";
  return system;
}

}  // namespace headroom
