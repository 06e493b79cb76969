// The members of a system's host.
#pragma once

namespace headroom {

inline constexpr auto host_fields = [](auto& fields, auto& host) {
  fields.required("memory", host.memory);
  fields.required("memory_bandwidth", host.memory_bandwidth);
  fields.required("device_link", host.device_link);
  fields.required("source", host.source);
};

}  // namespace headroom
