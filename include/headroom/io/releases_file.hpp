// Files of releases, format 1: the releases of a training stack, and what each of them changed
// (presets/releases/FAMILY.json). `headroom schema releases` prints the JSON schema.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/hardware/software.hpp"

namespace headroom {

struct StackRelease {
  std::string name;               // "26.04"
  std::vector<std::string> tags;  // of the repository: "v0.4.0"
  std::string date;               // day of the first tag: "2026-04-16"
  std::string stack;              // embedded stack to start from; empty: the release before
  std::string set;                // members of a software file that changed, as JSON; empty: none
  std::string source;
  friend bool operator==(const StackRelease&, const StackRelease&) = default;
};

struct StackFamily {
  std::string name;  // "megatron-bridge"
  std::string source;
  std::vector<std::string> runs_of;    // whose runs these are, by words of a run's software: "NeMo"
  std::vector<StackRelease> releases;  // by date
  friend bool operator==(const StackFamily&, const StackFamily&) = default;
};

// Returns the releases in a file's text; `file` is its name. Throws InputError, also if a release is no stack.
StackFamily parse_releases(std::string_view text, const std::string& file);

// Returns the text of a file of releases. parse_releases reads back the same family, except its name.
std::string write_releases(const StackFamily& family);

// Returns an embedded family. Throws InputError, naming the families.
StackFamily read_family(std::string_view name);

// Returns the embedded families, sorted by name.
std::vector<StackFamily> list_families();

// Returns the place of the release that a text means: its name or tag ("26.04", "v0.4.0"), or the last release of
// a day or month ("2026-04-20", "2026-04"). Empty: the last release. Throws InputError, naming the releases.
std::size_t release_of(const StackFamily& family, std::string_view text);

// Returns the release whose name stands in the software of a run ("26.04 NeMo Container"), of a family whose
// `runs_of` names it: "megatron-bridge@26.04". Returns nothing if there is none or more than one.
std::optional<std::string> release_of_runs(const std::vector<StackFamily>& families,
                                           std::string_view software);

// A release that a text such as "megatron-bridge@26.04" names.
struct NamedRelease {
  StackFamily family;
  std::size_t place = 0;  // among its releases
};

// Returns the release that a text names: FAMILY@RELEASE, or FAMILY alone for its last release. Returns nothing if
// the text is a file or names no family. Throws InputError if the family has no such release.
std::optional<NamedRelease> find_release(const std::string& text);

// Returns "megatron-bridge@26.04".
std::string name_of(const StackFamily& family, std::size_t place);

// Returns the training stack that a release is, with that name. Throws InputError.
Software software_of(const StackFamily& family, std::size_t place);

}  // namespace headroom
