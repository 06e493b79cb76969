#include "headroom/interop/oom_message.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "headroom/core/decimal.hpp"
#include "interop/byte_source.hpp"

namespace headroom {
namespace {

constexpr std::size_t longest_message = 4096;

// Reads "1.50 GiB" or "512 bytes" at the front of a text.
std::optional<Bytes> leading_bytes(std::string_view text) {
  double number = 0;
  const auto [end, error] = decimal_from_chars(text.data(), text.data() + text.size(), number);
  constexpr double most = 1e12;  // of any unit; more, infinity or no number is nonsense
  if (error != std::errc() || !(number >= 0 && number <= most)) return std::nullopt;
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

// Reads PyTorch's message whose words " out of memory. Tried to allocate " are at a place of a text.
OomMessage torch_message(std::string_view text, std::size_t at) {
  const std::string_view message = text.substr(at, longest_message);
  OomMessage read;
  read.hip = text.substr(0, at).ends_with("HIP");
  read.asked = bytes_after(message, "Tried to allocate ");
  if (const std::size_t gpu = message.find("GPU "); gpu != std::string_view::npos) {
    std::int64_t number = 0;
    const char* const first = message.data() + gpu + std::string_view("GPU ").size();
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
// PyTorch's first: the others may follow from it.
constexpr std::array<Words, 9> messages{{{" out of memory. Tried to allocate ", OutOf::torch},
                                         {"Cuda failure 'out of memory'", OutOf::nccl},
                                         {"Cuda failure 2 'out of memory'", OutOf::nccl},
                                         {"CUBLAS_STATUS_ALLOC_FAILED", OutOf::cublas},
                                         {"CUDA error: out of memory", OutOf::driver},
                                         {"RESOURCE_EXHAUSTED", OutOf::xla},
                                         {"oom_kill event", OutOf::host},
                                         {"oom-kill", OutOf::host},
                                         {"Out of memory: Killed process", OutOf::host}}};

OomMessage message_at(std::string_view text, std::size_t at, OutOf source) {
  if (source == OutOf::torch) return torch_message(text, at);
  OomMessage read{.source = source};
  if (source == OutOf::xla)
    read.asked = bytes_after(text.substr(at, longest_message), "while trying to allocate ");
  return read;
}

// The first message of each kind, in pieces of a log.
class MessageScan {
 public:
  // Reads the messages that begin in the first `length` bytes of a piece. The next piece begins behind them.
  void read(std::string_view piece, std::size_t length) {
    for (std::size_t kind = 0; kind < messages.size(); ++kind) {
      const Words& words = messages[kind];
      for (std::size_t at = piece.find(words.text); at < length; at = piece.find(words.text, at + 1)) {
        if (++counts_[kind] > 1) continue;
        first_[kind] = message_at(piece, at, words.source);
        first_[kind].line = lines_ + 1 + lines_in(piece.substr(0, at));
      }
    }
    lines_ += lines_in(piece.substr(0, length));
  }

  [[nodiscard]] std::optional<OomMessage> first() const {
    std::optional<std::size_t> found;
    for (std::size_t kind = 0; kind < messages.size(); ++kind) {
      if (counts_[kind] == 0) continue;
      if (kind > 0 && found && (*found == 0 || first_[*found].line <= first_[kind].line)) continue;
      found = kind;
    }
    if (!found) return std::nullopt;
    OomMessage message = first_[*found];
    message.messages = counts_[*found];
    return message;
  }

 private:
  static std::int64_t lines_in(std::string_view text) { return std::count(text.begin(), text.end(), '\n'); }

  std::array<OomMessage, messages.size()> first_;
  std::array<std::int64_t, messages.size()> counts_{};
  std::int64_t lines_ = 0;
};

}  // namespace

Bytes reserved(const OomMessage& message) {
  const Bytes none(0);
  return message.allocated.value_or(none) + message.unused.value_or(none);
}

std::optional<OomMessage> read_oom_message(std::string_view text) {
  MessageScan scan;
  scan.read(text, text.size());
  return scan.first();
}

std::optional<OomMessage> read_oom_log(const std::string& path) {
  constexpr std::uint64_t largest_log = std::uint64_t{1} << 36U;  // an endless device is refused
  constexpr std::size_t piece = std::size_t{1} << 22U;
  ByteSource source(path);
  source.allow(largest_log);
  MessageScan scan;
  std::string text;
  for (bool ended = false; !ended;) {
    const std::size_t kept = text.size();
    text.resize(kept + piece);
    const auto count = static_cast<std::size_t>(source.sgetn(text.data() + kept, piece));
    text.resize(kept + count);
    ended = count < piece;
    // What begins near the end is left for the next piece, which has the rest of it.
    const std::size_t length = ended ? text.size() : text.size() - std::min(text.size(), longest_message);
    scan.read(text, length);
    text.erase(0, length);
  }
  return scan.first();
}

}  // namespace headroom
