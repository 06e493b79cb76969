// Writes pickles of protocol 2: dictionaries, lists, texts, whole numbers and booleans [Python,
// Lib/pickle.py].
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace headroom {

class PickleWriter {
 public:
  // The bytes go to `write` in order, in parts of about 64 KiB.
  explicit PickleWriter(const std::function<void(const std::string&)>& write) : write_(write) {
    bytes_ = "\x80\x02";
  }

  // A dictionary or a list, whose items follow until it ends. Items of a dictionary are a key and a value
  // in turn.
  void begin_dict() { bytes_ += "}("; }
  void end_dict() { put('u'); }
  void begin_list() { bytes_ += "]("; }
  void end_list() { put('e'); }
  // Ends a run of items of a list and begins another: some readers pass all items of a run as arguments of
  // one call, whose number is limited.
  void next_run() { bytes_ += "e("; }

  void text(std::string_view text) {
    const auto [place, is_new] = texts_.try_emplace(std::string(text), memo_);
    if (!is_new) return again(place->second);
    put('X');
    number(text.size(), 4);
    bytes_ += text;
    remember();
  }
  void integer(std::int64_t value) {
    if (value >= 0 && value < 256) {
      put('K');
      return number(static_cast<std::uint64_t>(value), 1);
    }
    if (value >= INT32_MIN && value <= INT32_MAX) {
      put('J');
      return number(static_cast<std::uint64_t>(value), 4);
    }
    put('\x8a');
    number(8, 1);
    number(static_cast<std::uint64_t>(value), 8);
  }
  void real(double value) {
    put('G');
    std::uint64_t bits = 0;  // std::bit_cast is not in emscripten's libc++
    std::memcpy(&bits, &value, sizeof bits);
    for (int byte = 7; byte >= 0; --byte) put(static_cast<char>(bits >> (8 * byte) & 0xFF));
  }
  void boolean(bool value) { put(value ? '\x88' : '\x89'); }
  void pair(std::int64_t first, std::int64_t second) {
    integer(first);
    integer(second);
    put('\x86');
  }

  // Gives what was written last a number, with which again() writes it once more.
  std::uint32_t remember() {
    if (memo_ < 256) {
      put('q');
      number(memo_, 1);
    } else {
      put('r');
      number(memo_, 4);
    }
    return memo_++;
  }
  void again(std::uint32_t number_of) {
    put(number_of < 256 ? 'h' : 'j');
    number(number_of, number_of < 256 ? 1 : 4);
  }

  void finish() {
    put('.');
    write_(bytes_);
    bytes_.clear();
  }

 private:
  static constexpr std::size_t part = std::size_t{1} << 16;

  void put(char byte) {
    if (bytes_.size() >= part) {
      write_(bytes_);
      bytes_.clear();
    }
    bytes_ += byte;
  }
  void number(std::uint64_t value, int bytes) {
    for (int byte = 0; byte < bytes; ++byte) put(static_cast<char>(value >> (8 * byte) & 0xFF));
  }

  const std::function<void(const std::string&)>& write_;
  std::string bytes_;
  std::map<std::string, std::uint32_t, std::less<>> texts_;
  std::uint32_t memo_ = 0;
};

}  // namespace headroom
