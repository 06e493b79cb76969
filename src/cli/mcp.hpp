// The Model Context Protocol over standard input and output: JSON-RPC 2.0, a message a line
// (https://modelcontextprotocol.io/specification/2025-11-25).
#pragma once

#include "cli/service.hpp"

namespace headroom::cli {

// Answers messages of standard input until it ends. Calls of tools run beside each other; every other request is answered
// at once.
void serve_mcp(const ServiceLimits& limits);

}  // namespace headroom::cli
