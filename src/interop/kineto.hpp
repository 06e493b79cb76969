// Traces of PyTorch's profiler: an object with a list "traceEvents", whose events are read one at a time.
#pragma once

#include <string>

#include "interop/byte_source.hpp"
#include "interop/profile_events.hpp"

namespace headroom {

// Throws InputError when the source is no such trace or is cut off.
ProfileEvents read_kineto(ByteSource& source, const std::string& file);

}  // namespace headroom
