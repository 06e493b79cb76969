// System files, format 1: a device, its node, what the software stack takes of its memory, and how fast it is.
//
//   {"format": 1, "source": "...", "device": "A100-SXM4-80GB", "memory": "80 GiB", "devices_per_node": 8,
//    "reserves": [{"name": "cublas_workspace", "bytes": "8.125 MiB", "origin": "exact", "source": "..."}]}
//
// Every member is required, since a default would be a number without a source; "reserves" may be empty. A member
// "performance" (device, network and rates, each rate with origin and source) allows predictions of time. A file
// with "base": NAME needs a "source" only: what it leaves out is that of the embedded system, but for "runs_of", the
// devices whose runs are predicted on this system where they name none.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/hardware/system.hpp"

namespace headroom {

// As read_model in model_file.hpp. Throws InputError.
System read_system(const std::string& source, const std::vector<std::string>& overrides = {});

// A system of one's own from a data sheet: `base` with what the overrides set. Rates that they do not set are those of the base,
// scaled by the figures of the two devices (hardware/scaled_rates.hpp), and assumed. Throws InputError.
System new_system(const std::string& base, const std::vector<std::string>& overrides);

// The system in a file's text; `file` is its name. Throws InputError.
System parse_system(std::string_view text, const std::string& file);

// The text of a system file. parse_system gives the same system back, its name aside.
std::string write_system(const System& system);

// What an override may name: "memory", "performance.rates.products.sustained.value".
std::vector<std::string> system_field_names();

// The embedded system for runs on a device that name no system: the one whose file says so ("runs_of"), by any of the
// device's names; where the name leaves the memory open, one that was measured, and then the one with the most. Absent where no file does.
std::optional<System> system_of_device(const std::string& device);

// The embedded systems, sorted by name.
std::vector<System> list_systems();

}  // namespace headroom
