#include "headroom/io/system_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "calibrate/rate_parameters.hpp"
#include "file_formats.hpp"
#include "headroom/calibrate/sample.hpp"
#include "headroom/core/contains.hpp"
#include "headroom/hardware/scaled_rates.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/io/quantity.hpp"
#include "headroom/memory/reserves.hpp"
#include "object_reader.hpp"
#include "object_writer.hpp"
#include "rate_fields.hpp"
#include "schema_writer.hpp"
#include "text.hpp"

namespace headroom {
namespace {

constexpr Range node_sizes{1, 1 << 16};
constexpr Range configuration_counts{0, 1 << 16};

constexpr auto reserve_fields = [](auto& fields, auto& reserve) {
  fields.required("name", reserve.name);
  fields.required("bytes", reserve.bytes);
  fields.optional("per", reserve.per);
  fields.optional("workspace", reserve.workspace);
  fields.required("origin", reserve.origin);
  fields.required("source", reserve.source);
};

constexpr auto device_fields = [](auto& fields, auto& device) {
  fields.required("multiprocessors", device.multiprocessors, node_sizes);
  fields.required("half_peak", device.half_peak);
  fields.required("fp32_peak", device.fp32_peak);
  fields.required("memory_bandwidth", device.memory_bandwidth);
  fields.required("link_bandwidth", device.link_bandwidth);
  fields.optional("direct_peers", device.direct_peers, node_sizes);
  fields.optional("fp8_peak", device.fp8_peak);
  fields.optional("fp4_peak", device.fp4_peak);
  fields.optional("mxfp4_peak", device.mxfp4_peak);
};

constexpr Range leaf_sizes{1, 1 << 20};
constexpr auto network_fields = [](auto& fields, auto& network) {
  fields.required("nics_per_device", network.nics_per_device);
  fields.required("nic_bandwidth", network.nic_bandwidth);
  fields.required("origin", network.origin);
  fields.required("source", network.source);
  fields.required_object("rails", network.rails, sourced_fields);
  fields.required_object("oversubscription", network.oversubscription, sourced_fields);
  fields.optional("nodes_per_leaf", network.nodes_per_leaf, leaf_sizes);
};

constexpr auto run_spread_fields = [](auto& fields, auto& spread) {
  fields.required("logarithm", spread.logarithm);
  fields.required("configurations", spread.configurations, configuration_counts);
  fields.required("flash_attention", spread.flash_attention);
  fields.optional("slower", spread.slower);
  fields.required("origin", spread.origin);
  fields.required("source", spread.source);
};

constexpr auto performance_fields = [](auto& fields, auto& performance) {
  fields.required_object("device", performance.device, device_fields);
  fields.required_object("network", performance.network, network_fields);
  fields.required_object("rates", performance.rates, rate_fields);
  fields.object("iteration_spread", performance.run_spread, run_spread_fields);
};

constexpr auto host_fields = [](auto& fields, auto& host) {
  fields.required("memory", host.memory);
  fields.required("memory_bandwidth", host.memory_bandwidth);
  fields.required("device_link", host.device_link);
  fields.required("source", host.source);
};

constexpr auto system_fields = [](auto& fields, auto& system) {
  fields.format(1);
  fields.required("source", system.source);
  fields.required("device", system.device);
  fields.optional_texts("runs_of", system.runs_of);
  fields.required("memory", system.memory, DeviceMemory{});
  fields.required("devices_per_node", system.devices_per_node, node_sizes);
  fields.optional("devices_per_host", system.devices_per_host, node_sizes);
  fields.object("host", system.host, host_fields);
  fields.object("tdp", system.tdp, sourced_fields);
  fields.object("power_exponent", system.power_exponent, sourced_fields);
  fields.list("reserves", system.reserves, reserve_fields);
  fields.optional("default_software", system.default_software);
  fields.object("performance", system.performance, performance_fields);
};

// Rates that are a share of something, wherever they stand, and numbers that are at least 1.
constexpr std::array<std::string_view, 7> shares{"sustained",
                                                 "last_tile",
                                                 "backward",
                                                 "bandwidth_share",
                                                 "overlap_loss",
                                                 "nic_efficiency",
                                                 "shared_nic_efficiency"};
constexpr std::array<std::string_view, 2> multiples{"overlap_order", "oversubscription"};

// What is achieved stays below what the data sheet allows. A peak that is zero was never read.
void check_rates(const Performance& performance, Document& document) {
  const Device& device = performance.device;
  const Rates& rates = performance.rates;
  const auto at = [](const std::string& group) { return JsonPointer("/performance/rates/" + group); };
  const auto ratios = [&](const std::string& group, const HeldOutRatios& range) {
    if (!range || range->least <= range->most) return;
    document.report(at(group) / "held_out_ratios", "must have least at most as large as most");
  };
  const auto below = [&](const std::string& group, const char* name, const auto& rate, const auto& peak,
                         const char* what) {
    if (peak.count() == 0 || rate.value <= peak) return;
    document.report(at(group) / name / "value", fmt::format("must not exceed the device's {} ({} > {})", what,
                                                            to_text(rate.value), to_text(peak)));
  };
  const auto products = [&](const std::string& group, const MatrixProductRates& of, FlopsPerSecond peak,
                            const char* peak_name) {
    below(group, "tile_peak", of.tile_peak, peak, peak_name);
    below(group, "power_cap", of.power_cap, peak, peak_name);
    below(group, "memory_bandwidth", of.memory_bandwidth, device.memory_bandwidth, "memory_bandwidth");
    ratios(group, of.held_out_ratios);
  };
  const auto grouped = [&](const std::string& group, const std::optional<GroupedProductRates>& of,
                           FlopsPerSecond peak, const char* peak_name) {
    if (!of) return;
    below(group, "tile_peak", of->tile_peak, peak, peak_name);
    below(group, "memory_bandwidth", of->memory_bandwidth, device.memory_bandwidth, "memory_bandwidth");
    below(group, "row_bandwidth", of->row_bandwidth, device.memory_bandwidth, "memory_bandwidth");
    ratios(group, of->held_out_ratios);
  };
  products("products", rates.products, device.half_peak, "half_peak");
  grouped("grouped_products", rates.grouped_products, device.half_peak, "half_peak");
  for (std::size_t i = 0; i < narrow_types.size(); ++i) {
    if (!rates.products_by_dtype[i]) continue;
    const Dtype dtype = narrow_types[i].dtype;
    const std::string group = fmt::format("products_by_dtype/{}", name_of(dtype));
    const char* peak = arithmetic_of(dtype) == Arithmetic::fp8 ? "fp8_peak" : "fp4_peak";
    if (!has_peak(device, dtype))
      document.report(JsonPointer("/performance/device") / peak,
                      fmt::format("is missing, which rates of {} need", name_of(dtype)));
    products(group, rates.products_by_dtype[i]->products, peak_of(device, dtype), peak);
    grouped(group + "/grouped_products", rates.products_by_dtype[i]->grouped, peak_of(device, dtype), peak);
  }
  below("collectives", "ring_bandwidth", rates.collectives.ring_bandwidth, device.link_bandwidth,
        "link_bandwidth");
  ratios("streaming", rates.streaming.held_out_ratios);
  ratios("collectives", rates.collectives.held_out_ratios);
  const FlashRates& flash = rates.flash_attention;
  below("flash_attention", "tile_peak", flash.tile_peak, device.half_peak, "half_peak");
  below("flash_attention", "power_cap", flash.power_cap, device.half_peak, "half_peak");
  ratios("flash_attention", flash.held_out_ratios);
  // The order of a smooth maximum.
  const auto at_least_one = [&](const char* group, const char* name, double order) {
    if (order < 1)
      document.report(at(group) / name / "value", fmt::format("must be at least 1 (found {})", order));
  };
  at_least_one("flash_attention", "overlap_order", flash.overlap_order.value);
  at_least_one("host", "balance", rates.host.balance.value);
  visit_rates(rates, [&](std::string_view group, std::string_view name, const auto& rate) {
    if constexpr (std::is_same_v<decltype(rate), const Sourced<double>&>) {
      if (rate.value <= 1 || !contains(shares, name)) return;
      std::string place(group);
      std::replace(place.begin(), place.end(), '.', '/');
      document.report(at(place) / std::string(name) / "value",
                      fmt::format("must be at most 1 (found {})", rate.value));
    }
  });
  const JsonPointer of_network("/performance/network");
  const Network& network = performance.network;
  if (network.oversubscription.value < 1) {
    document.report(of_network / "oversubscription" / "value",
                    fmt::format("must be at least 1 (found {})", network.oversubscription.value));
  }
  if (network.rails.value == Rails::aligned && network.nics_per_device < 1) {
    document.report(
        of_network / "rails" / "value",
        "can be aligned only where every device has a NIC of its own (nics_per_device is below 1)");
  }
}

void check(const System& system, Document& document) {
  if (system.performance) check_rates(*system.performance, document);
  if (system.performance && system.performance->device.direct_peers.value_or(system.devices_per_node) <
                                system.devices_per_node - 1) {
    document.report(
        JsonPointer("/performance/device/direct_peers"),
        fmt::format("must be at least devices_per_node - 1 = {} (found {}): each device of a node is "
                    "linked to all others, or to switches without this field",
                    system.devices_per_node - 1, *system.performance->device.direct_peers));
  }
  if (system.devices_per_host && system.devices_per_node % *system.devices_per_host != 0) {
    document.report(
        JsonPointer("/devices_per_host"),
        fmt::format("must divide devices_per_node ({} % {} = {})", system.devices_per_node,
                    *system.devices_per_host, system.devices_per_node % *system.devices_per_host));
  }
  if (system.power_exponent && (system.power_exponent->value < 0 || system.power_exponent->value > 1))
    document.report(JsonPointer("/power_exponent/value"), "must be between 0 and 1");
  if (std::string rule = names_nothing(system.default_software, "software"); !rule.empty()) {
    document.report(JsonPointer("/default_software"),
                    fmt::format("{} (found \"{}\")", rule, printable(system.default_software)));
  }
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < system.reserves.size(); ++i) {
    const Reserve& reserve = system.reserves[i];
    if (!reserve.name.empty() && !names.insert(reserve.name).second) {
      document.report(JsonPointer() / "reserves" / i / "name", "is the name of an earlier reserve");
    }
  }
  const Bytes most = most_reserved(system);
  if (system.memory > Bytes() && most >= system.memory) {
    document.report(JsonPointer() / "reserves", fmt::format("must leave some of the memory ({} of {})",
                                                            to_text(most), to_text(system.memory)));
  }
}

}  // namespace

namespace {

// Gives a system the rates of a base, scaled by the figures of both devices.
void scale_rates(System& system, const System& base, OtherFigures meant) {
  system.performance->run_spread.reset();
  Rates& rates = system.performance->rates;
  rates = scaled_rates(*base.performance, system.performance->device, base.name, meant);
  std::vector<std::string> names;
  visit_rates(rates, [&](std::string_view group, std::string_view name, const auto&) {
    const Device& device = system.performance->device;
    if (rate_scale(group, name, device, base.performance->device).factor != 1)
      names.push_back(fmt::format("{}.{}", group, name));
  });
  for (const std::string& name : names) round_rate(rates, name, /*down=*/true);
}

// Completes a file from the embedded system that it names: "base", whose rates it has, or "scaled_from", whose
// rates follow the figures of the file's device.
void lay_over_other(Document& document) {
  constexpr const char* key = "scaled_from";
  Json& root = document.root;
  if (!root.is_object() || !root.contains(key)) return lay_over_base(document, "system");
  const auto refuse = [&](const JsonPointer& at, const std::string& rule) {
    document.report(at, rule);
    document.finish();
  };
  if (root.contains("base")) return refuse(JsonPointer("/base"), "contradicts /scaled_from");
  const Json name = root[key];
  if (!name.is_string() || find_embedded("system", name.get<std::string>()) == nullptr) {
    const std::string text = name.is_string() ? name.get<std::string>() : name.dump();
    return refuse(JsonPointer() / key, fmt::format("'{}' is not the name of a system", printable(text)));
  }
  const System base = read_system(name.get<std::string>());
  const JsonPointer at_rates("/performance/rates");
  const Json stated = root.contains(at_rates) ? root[at_rates] : Json::object();
  const Json names = root.contains("runs_of") ? root["runs_of"] : Json::array();
  root.erase(key);
  root["base"] = name;
  lay_over_base(document, "system");
  System system;
  ObjectReader::read(document, JsonPointer(), system, system_fields);
  document.finish();
  if (!base.performance || !system.performance)
    return refuse(JsonPointer() / key, "names a system without performance figures");
  scale_rates(system, base, OtherFigures::another_device);
  root = read_document(write_system(system), document.file).root;
  root["performance"]["rates"].merge_patch(stated);
  if (!names.empty()) root["runs_of"] = names;
}

}  // namespace

System system_of(Document document) {
  lay_over_other(document);
  System system;
  system.name = stem_of(document.file);
  if (ObjectReader::read(document, JsonPointer(), system, system_fields)) check(system, document);
  document.finish();
  system.source += described_overrides(document);
  return system;
}

namespace {

void bound_rates(nlohmann::ordered_json& schema) {
  if (!schema.contains("properties")) return;
  for (auto& [name, member] : schema["properties"].items()) {
    if (contains(shares, std::string_view(name)) || name == "power_exponent")
      member["properties"]["value"]["maximum"] = 1;
    if (contains(multiples, std::string_view(name))) {
      member["properties"]["value"] = {{"type", "number"}, {"minimum", 1}};
    }
    bound_rates(member);
  }
}

}  // namespace

// A system on a `base` takes from it what it leaves out: what it requires then is an object's own `source` alone.
nlohmann::ordered_json system_schema() {
  nlohmann::ordered_json whole = SchemaWriter::write(System{}, system_fields);
  bound_rates(whole);
  nlohmann::ordered_json schema = without_required(whole);
  schema["required"] = {"format", "source"};
  schema["properties"]["base"] = schema["properties"]["scaled_from"] = text_schema();
  schema["if"] = {{"not", {{"anyOf", {{{"required", {"base"}}}, {{"required", {"scaled_from"}}}}}}}};
  schema["then"] = required_alone(whole);
  return schema;
}

namespace {

// With rates that follow the figures of the device's data sheet. `overrides` are of `flag`.
System with_figures(const std::string& base_name, const std::vector<std::string>& overrides,
                    std::string_view flag, OtherFigures meant) {
  const System base = read_system(base_name);
  if (!base.performance)
    throw InputError(base_name, "has no performance figures, which a new system's are scaled from");
  Document document = open_document(base_name, "system");
  lay_over_other(document);
  apply_overrides(document, overrides, flag);
  const bool named = document.overridden.contains("/source");
  System system;
  ObjectReader::read(document, JsonPointer(), system, system_fields);
  document.finish();
  if (meant == OtherFigures::another_device) {
    system.runs_of.clear();
    if (!named)
      system.source = fmt::format("{} with other figures. Its source: {}", base.name, system.source);
  }
  if (system.device != base.device || system.performance->device != base.performance->device) {
    scale_rates(system, base, meant);
  } else {  // the same GPU in another cluster: its kernels were measured
    system.performance->run_spread.reset();
  }
  // Read again, to be checked like any file, with the rates that were set.
  Document scaled = read_document(write_system(system), base_name);
  std::vector<std::string> rates;
  for (const std::string& each : overrides) {
    if (each.starts_with("performance.rates.")) rates.push_back(each);
  }
  apply_overrides(scaled, rates, flag);
  scaled.overrides = named ? std::vector<std::string>() : document.overrides;
  return system_of(std::move(scaled));
}

}  // namespace

System new_system(const std::string& base, const std::vector<std::string>& overrides) {
  return with_figures(base, overrides, "set", OtherFigures::another_device);
}

nlohmann::ordered_json json_of(const System& system) { return ObjectWriter::write(system, system_fields); }

namespace {

bool any_starts_with(const std::vector<std::string>& overrides, std::string_view start) {
  return std::any_of(overrides.begin(), overrides.end(),
                     [&](const std::string& override) { return override.starts_with(start); });
}

System with_overrides(const std::string& source, const std::vector<std::string>& overrides) {
  if (any_starts_with(overrides, "performance.device."))
    return with_figures(source, overrides, "set_system", OtherFigures::what_if);
  Document document = open_document(source, "system");
  lay_over_other(document);
  apply_overrides(document, overrides, "set_system");
  return system_of(std::move(document));
}

// Memory-bound kernels draw 137 to 300 W of an H200's 700 W [arXiv:2605.11999], so that no limit down to there slows them.
constexpr double least_power_share = 300.0 / 700;

// The rates of a device under a lower power limit than its own, which they are of, but for those that overrides state.
void limit_power(System& system, const System& own, const std::vector<std::string>& overrides) {
  if (!own.tdp || !system.tdp || !system.performance) return;
  const double share = system.tdp->value.count() / own.tdp->value.count();
  if (share > 1 || share < least_power_share) {
    throw InputError(
        "set_system tdp",
        fmt::format("must be {} to {}, the power limit of {}{}, not {}",
                    to_text(Watts(std::ceil(least_power_share * own.tdp->value.count()))),
                    to_text(own.tdp->value), own.name,
                    share > 1 ? " (--power-per-gpu counts energy at another power)"
                              : ": below it memory-bound kernels slow down too, which is not modelled",
                    to_text(system.tdp->value)));
  }
  const double factor = std::pow(share, system.power_exponent ? system.power_exponent->value : 1);
  visit_rates(system.performance->rates, [&](std::string_view group, std::string_view name, auto& rate) {
    if constexpr (std::is_same_v<std::decay_t<decltype(rate.value)>, double>) {
      if (name != "sustained" || factor == 1) return;
      if (any_starts_with(overrides, fmt::format("performance.rates.{}.sustained", group))) return;
      rate = {
          factor * rate.value, Origin::assumed,
          fmt::format("Power as the mechanism: {:.3g} of what the device sustains at {}, at {}. There: {}",
                      factor, to_text(own.tdp->value), to_text(system.tdp->value), rate.source)};
    }
  });
}

}  // namespace

System read_system(const std::string& source, const std::vector<std::string>& overrides) {
  System system = with_overrides(source, overrides);
  if (any_starts_with(overrides, "tdp")) limit_power(system, with_overrides(source, {}), overrides);
  return system;
}

System parse_system(std::string_view text, const std::string& file) {
  return system_of(read_document(text, file));
}

std::string write_system(const System& system) { return json_of(system).dump(2) + '\n'; }

std::vector<std::string> system_field_names() {
  return value_names(json_of(System{.performance = Performance{}}));
}

std::optional<System> system_of_device(const std::string& device) {
  const auto merit = [](const System& system) {
    const bool measured =
        system.performance && system.performance->rates.products.tile_peak.origin == Origin::calibrated;
    return std::pair(measured, system.memory);
  };
  std::optional<System> found;
  for (System& system : list_systems()) {
    const bool meant = std::any_of(system.runs_of.begin(), system.runs_of.end(),
                                   [&](const std::string& name) { return same_device(device, name); });
    if (meant && (!found || merit(*found) < merit(system))) found = std::move(system);
  }
  return found;
}

std::vector<System> list_systems() {
  std::vector<System> systems;
  for (const std::string_view name : embedded_names("system")) {
    const EmbeddedFile* file = find_embedded("system", name);
    systems.push_back(parse_system(file->text, std::string(file->path)));
  }
  return systems;
}

}  // namespace headroom
