// Bytes of a file or a text as a stream, gzipped or not, which can be told to refuse one that never ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

class ByteSource final : public std::streambuf {
 public:
  // Throws InputError when the file is a directory or cannot be opened.
  explicit ByteSource(const std::string& path);
  // Of a text; `file` is its name.
  ByteSource(std::string_view text, std::string file);
  ~ByteSource() override;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // From here on at most `most` more bytes may be read, until the next call.
  void allow(std::uint64_t most) { allowed_ = most; }

 protected:
  // Throws InputError where the compressed data ends early or is damaged, and beyond what is allowed.
  int_type underflow() override;

 private:
  struct Inflater;
  std::string file_;
  std::unique_ptr<Inflater> inflater_;
  std::vector<char> block_;
  std::uint64_t allowed_;
};

}  // namespace headroom
