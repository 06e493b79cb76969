#include "cli/picture_file.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include <unistd.h>

#include "cli/output.hpp"
#include "cli/terminal.hpp"
#include "headroom/core/error.hpp"

namespace headroom::cli {
namespace {

constexpr const char* converter = "rsvg-convert";

bool is_png(const std::string& file) { return file.ends_with(".png"); }

bool has_converter() {
  std::string_view left = environment("PATH");
  while (!left.empty()) {
    const std::string_view folder = left.substr(0, left.find(':'));
    left.remove_prefix(std::min(left.size(), folder.size() + 1));
    if (access((std::filesystem::path(folder) / converter).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// A text in a file for as long as another program reads it.
class Scratch {
 public:
  explicit Scratch(const std::string& text) {
    std::error_code failure;
    const std::filesystem::path folder = std::filesystem::temp_directory_path(failure);
    std::string name = failure ? "" : std::filesystem::absolute(folder / "headroom-XXXXXX").string();
    const int number = failure ? -1 : mkstemp(name.data());
    if (number < 0) throw InputError("TMPDIR", "must be a folder to write to, which a PNG needs");
    close(number);
    path_ = name;
    std::ofstream(path_, std::ios::binary) << text;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The pixels of a picture, twice as many as its SVG names, for screens of today.
std::string png_of(const std::string& file, const std::string& svg) {
  const Scratch drawing(svg);
  // The shell takes the path from the environment, whatever characters it has.
  setenv("HEADROOM_DRAWING", drawing.path().c_str(),
         1);  // NOLINT(concurrency-mt-unsafe): no thread runs here
  const std::string command =
      std::string(converter) + R"( --zoom 2 --background-color white --format png "$HEADROOM_DRAWING")";
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) throw InputError(file, std::string("cannot be drawn: ") + converter + " does not start");
  std::string png;
  std::array<char, 1 << 16> part{};
  while (const std::size_t read = std::fread(part.data(), 1, part.size(), pipe.get()))
    png.append(part.data(), read);
  const bool failed = pclose(pipe.release()) != 0;
  constexpr std::string_view signature = "\x89PNG\r\n\x1a\n";
  if (failed || !png.starts_with(signature))
    throw InputError(file, std::string("cannot be drawn: ") + converter + " failed");
  return png;
}

}  // namespace

const std::vector<std::string>& picture_endings() {
  static const std::vector<std::string> endings{".svg", ".png"};
  return endings;
}

bool is_picture(const std::string& file) {
  return std::any_of(picture_endings().begin(), picture_endings().end(),
                     [&](const std::string& ending) { return file.ends_with(ending); });
}

std::string obstacle_to_picture(const std::string& file) {
  if (!is_png(file) || has_converter()) return "";
  return "needs rsvg-convert (package librsvg2-bin) to write a PNG: install it, or write an SVG";
}

void write_picture(const std::string& file, const std::string& svg) {
  if (const std::string obstacle = obstacle_to_picture(file); !obstacle.empty())
    throw InputError(file, obstacle);
  write({.file = file}, is_png(file) ? png_of(file, svg) : svg);
}

}  // namespace headroom::cli
