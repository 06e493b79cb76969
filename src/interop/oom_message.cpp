#include "headroom/interop/oom_message.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace headroom {
namespace {

constexpr std::size_t longest_message = 4096;

// Reads "1.50 GiB" or "512 bytes" at the front of a text.
std::optional<Bytes> leading_bytes(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  constexpr std::array<std::pair<std::string_view, double>, 5> units{
      {{" bytes", 1}, {" KiB", 0x1p10}, {" MiB", 0x1p20}, {" GiB", 0x1p30}, {" TiB", 0x1p40}}};
  for (const auto& [unit, bytes] : units) {
    if (text.starts_with(unit)) return Bytes(number * bytes);
  }
  return std::nullopt;
}

std::optional<Bytes> bytes_after(std::string_view message, std::string_view words) {
  const std::size_t at = message.find(words);
  return at == std::string_view::npos ? std::nullopt : leading_bytes(message.substr(at + words.size()));
}

// Reads the number that ends where `words` begin.
std::optional<Bytes> bytes_before(std::string_view message, std::string_view words) {
  const std::size_t at = message.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view before = message.substr(0, at);
  const std::size_t number = before.find_last_of("0123456789");
  if (number == std::string_view::npos) return std::nullopt;
  const std::size_t first = before.find_last_not_of("0123456789.", number);
  return leading_bytes(before.substr(first == std::string_view::npos ? 0 : first + 1));
}

std::int64_t line_of(std::string_view text, std::size_t at) {
  return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
}

std::int64_t occurrences(std::string_view text, std::string_view words) {
  std::int64_t count = 0;
  for (std::size_t at = text.find(words); at != std::string_view::npos; at = text.find(words, at + 1))
    ++count;
  return count;
}

void read_new_form(std::string_view message, OomMessage& read) {
  read.capacity = bytes_after(message, "total capacity of ");
  if (!read.capacity) read.capacity = bytes_after(message, "total capacty of ");  // PyTorch 2.1
  read.free = bytes_after(message, "of which ");
  read.process = bytes_after(message, "this process has ");
  // Some drivers report nonsense.
  if (read.process && read.capacity && *read.process > *read.capacity) read.process.reset();
  read.limit = bytes_before(message, " allowed;");
  read.allocated = bytes_after(message, "Of the allocated memory ");
  read.pools = bytes_before(message, " allocated in private pools");
  read.unused = bytes_before(message, " is reserved by PyTorch but unallocated");
  read.expandable = message.find("expandable_segments") != std::string_view::npos;
}

// PyTorch up to 2.0: what is reserved includes what is allocated.
void read_old_form(std::string_view message, OomMessage& read) {
  read.capacity = bytes_before(message, " total capacity;");
  read.allocated = bytes_before(message, " already allocated;");
  read.free = bytes_before(message, " free;");
  const std::optional<Bytes> reserved = bytes_before(message, " reserved in total");
  if (reserved && read.allocated) read.unused = std::max(*reserved - *read.allocated, Bytes(0));
}

std::optional<OomMessage> torch_message(std::string_view text) {
  constexpr std::string_view words = " out of memory. Tried to allocate ";
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view message = text.substr(at, longest_message);
  OomMessage read{.line = line_of(text, at), .messages = occurrences(text, words)};
  read.hip = text.substr(0, at).ends_with("HIP");
  read.asked = leading_bytes(message.substr(words.size()));
  if (const std::size_t gpu = message.find("GPU "); gpu != std::string_view::npos) {
    std::int64_t number = 0;
    const char* const first = message.data() + gpu + 4;
    if (std::from_chars(first, message.data() + message.size(), number).ec == std::errc()) read.gpu = number;
  }
  if (message.find(" total capacity;") != std::string_view::npos) {
    read_old_form(message, read);
  } else {
    read_new_form(message, read);
  }
  return read;
}

struct Words {
  std::string_view text;
  OutOf source;
};
constexpr std::array<Words, 8> others{{{"Cuda failure 'out of memory'", OutOf::nccl},
                                       {"Cuda failure 2 'out of memory'", OutOf::nccl},
                                       {"CUBLAS_STATUS_ALLOC_FAILED", OutOf::cublas},
                                       {"CUDA error: out of memory", OutOf::driver},
                                       {"RESOURCE_EXHAUSTED", OutOf::xla},
                                       {"oom_kill event", OutOf::host},
                                       {"oom-kill", OutOf::host},
                                       {"Out of memory: Killed process", OutOf::host}}};

}  // namespace

std::optional<OomMessage> read_oom_message(std::string_view text) {
  if (auto torch = torch_message(text)) return torch;
  std::size_t first = std::string_view::npos;
  std::optional<OomMessage> found;
  for (const Words& words : others) {
    const std::size_t at = text.find(words.text);
    if (at >= first) continue;
    first = at;
    found = OomMessage{
        .source = words.source, .line = line_of(text, at), .messages = occurrences(text, words.text)};
    if (words.source == OutOf::xla) {
      constexpr std::string_view asked = "while trying to allocate ";
      found->asked = bytes_after(text.substr(at, longest_message), asked);
    }
  }
  return found;
}

}  // namespace headroom
