// Topics that the flags of a command are listed under, by --help-all and in its manual page.
#pragma once

#include <array>

namespace headroom::cli {

namespace topic {
inline constexpr const char* flags = "Flags";  // of a command with few
inline constexpr const char* sweep = "Sweep";
inline constexpr const char* model = "Model";
inline constexpr const char* launch_file = "Launch file as input";
inline constexpr const char* system = "System and training stack";
inline constexpr const char* parallelism = "Parallelism";
inline constexpr const char* memory = "Memory and precision";
inline constexpr const char* search_space = "Search space";
inline constexpr const char* inverse = "Inverse questions";
inline constexpr const char* training_run = "Training run";
inline constexpr const char* failures = "Failures";
inline constexpr const char* answer = "Answer";
inline constexpr const char* work = "Time and cores";
inline constexpr const char* output = "Output";
}  // namespace topic

// In the order in which they are listed.
inline constexpr std::array topics{topic::flags,   topic::sweep,        topic::answer,   topic::model,
                                   topic::system,  topic::parallelism,  topic::memory,   topic::search_space,
                                   topic::inverse, topic::training_run, topic::failures, topic::launch_file,
                                   topic::work,    topic::output};

}  // namespace headroom::cli
