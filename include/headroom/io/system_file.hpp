// System files, format 1: a GPU, its node, the memory that the software stack takes, and the system's
// performance.
//
//   {"format": 1, "source": "...", "device": "A100-SXM4-80GB", "memory": "80 GiB", "devices_per_node": 8,
//    "reserves": [{"name": "cublas_workspace", "bytes": "8.125 MiB", "origin": "exact", "source": "..."}]}
//
// Every member is required, since a default would be a number without a source; "reserves" may be empty. An
// optional member "performance" (device, network and rates, each rate with origin and source) allows
// predictions of time. A file with "base": NAME needs only a "source". Members that it leaves out come from
// the embedded system, except "runs_of": the GPUs whose runs are predicted on this system if the runs name no
// system. A file with "scaled_from": NAME in place of "base" states another GPU: rates that it does not state
// are those of NAME, scaled by the figures of both data sheets (hardware/scaled_rates.hpp) and marked as assumed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/hardware/system.hpp"

namespace headroom {

// Returns a system, read as read_model() in model_file.hpp reads a model. Throws InputError.
System read_system(const std::string& source, const std::vector<std::string>& overrides = {});

// Returns a user's system from a data sheet: `base` with the overrides. Rates without an override are the
// base's, scaled by the figures of both GPUs (hardware/scaled_rates.hpp), and marked as assumed. Throws
// InputError.
System new_system(const std::string& base, const std::vector<std::string>& overrides);

// Returns the system in a file's text; `file` is its name. Throws InputError.
System parse_system(std::string_view text, const std::string& file);

// Returns the text of a system file. parse_system reads back the same system, except its name.
std::string write_system(const System& system);

// Returns the names that an override accepts: "memory", "performance.rates.products.sustained.value".
std::vector<std::string> system_field_names();

// Returns the embedded system for runs on `device` that name no system: the system whose "runs_of" lists any
// of the GPU's names. If the name leaves the memory size open, measured systems take precedence, then the
// most memory. Absent if no file lists the GPU.
std::optional<System> system_of_device(const std::string& device);

// Returns the embedded systems, sorted by name.
std::vector<System> list_systems();

}  // namespace headroom
