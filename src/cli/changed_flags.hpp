// The flags of a second request, written where they differ from those of a first: `compare --to`, `plan --why`.
#pragma once

#include <string>
#include <vector>

#include "cli/request_flags.hpp"
#include "cli/system_flags.hpp"

namespace headroom::cli {

struct AllFlags {
  RequestFlags request;
  SystemFlags system;
};

// Puts earlier overrides (KEY=VALUE) before later ones, but for those of keys that are overridden again.
void lay_over(const std::vector<std::string>& earlier, std::vector<std::string>& later);

// Puts the flags in `text`, the value of `option`, over those of `first`; a list of overrides (`--set-software`) keeps what is not
// overridden again. `add` says which flags of systems and stacks there may be: add_system_flags or add_software_flags. Throws
// InputError where the text cannot be read.
AllFlags changed_flags(const AllFlags& first, const std::string& option, const std::string& text,
                       void (*add)(Command, SystemFlags&));

}  // namespace headroom::cli
