#include "headroom/interop/launched_run.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "headroom/core/error.hpp"
#include "interop/launch_in/readers.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

bool is_on_disk(const std::string& source) {
  std::error_code error;
  const auto status = std::filesystem::status(source, error);
  return !error && std::filesystem::exists(status) && !std::filesystem::is_directory(status);
}

bool ends_with_one_of(const std::string& source, const auto& endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view end) { return source.ends_with(end); });
}

bool is_script(const std::string& source) {
  constexpr std::array<std::string_view, 8> endings{".sh",  ".bash", ".sbatch", ".slurm",
                                                    ".job", ".pbs",  ".zsh",    ".lsf"};
  if (ends_with_one_of(source, endings)) return true;
  if (std::filesystem::path(source).has_extension()) return false;
  const std::string text = read_file(source);
  const std::string first = text.substr(0, text.find('\n'));
  return first.starts_with("#!") && first.find("sh") != std::string::npos;
}

}  // namespace

bool is_launched_run(const std::string& source) {
  return is_tree_launch(source) || (is_on_disk(source) && is_script(source));
}

LaunchedRun read_launched_run(const std::string& source, const LaunchOptions& options) {
  const std::string text = options.text ? *options.text : launch_text(source);
  if (is_tree_launch(source)) return read_tree_launch(text, source, options);
  return read_launch_script(text, source, options);
}

std::string launch_text(const std::string& source) { return read_file(file_of_launch(source)); }

}  // namespace headroom
