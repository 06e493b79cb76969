#include "interop/byte_source.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#define ZLIB_CONST  // what it reads from is const
#include <zlib.h>

#include "headroom/core/error.hpp"
#include "io/command_files.hpp"

namespace headroom {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 18;
constexpr int gzip_only = 16 + MAX_WBITS;  // what zlib takes as "expect gzip's header"
constexpr unsigned char gzip_magic[] = {0x1f, 0x8b};

}  // namespace

// Raw bytes, of a file or a text, and zlib's state where they are compressed. A gzipped file may have several members.
struct ByteSource::Inflater {
  OpenFile file{nullptr, std::fclose};
  std::string_view text;
  std::vector<char> raw;
  std::string_view left;  // of what was read last
  z_stream stream{};
  bool compressed = false;
  bool in_member = false;
  bool known = false;  // whether it is compressed

  ~Inflater() {
    if (compressed) inflateEnd(&stream);
  }

  void read_raw(const std::string& name) {
    if (!file) {
      left = std::exchange(text, {});
      return;
    }
    raw.resize(block_bytes);
    const std::size_t count = std::fread(raw.data(), 1, raw.size(), file.get());
    if (std::ferror(file.get()) != 0)
      throw InputError(name, "cannot be read: " + std::generic_category().message(errno));
    left = {raw.data(), count};
  }

  void look(const std::string& name) {
    known = true;
    const auto byte = [&](std::size_t i) {
      return i < left.size() ? static_cast<unsigned char>(left[i]) : 0;
    };
    compressed = byte(0) == gzip_magic[0] && byte(1) == gzip_magic[1];
    if (compressed && inflateInit2(&stream, gzip_only) != Z_OK) {
      compressed = false;
      throw InputError(name, "cannot be decompressed: no memory");
    }
  }

  // Up to `out.size()` bytes; 0 at the end.
  std::size_t read(std::vector<char>& out, const std::string& name) {
    if (left.empty()) read_raw(name);
    if (!known) look(name);
    if (!compressed) {
      const std::size_t count = std::min(left.size(), out.size());
      std::copy_n(left.begin(), count, out.begin());
      left.remove_prefix(count);
      return count;
    }
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    while (stream.avail_out == out.size()) {
      if (left.empty()) read_raw(name);
      if (left.empty()) {
        if (in_member) throw InputError(name, "is cut off: its compressed data ends early");
        return 0;
      }
      inflate_some(name);
    }
    return out.size() - stream.avail_out;
  }

  void inflate_some(const std::string& name) {
    const std::size_t given = std::min<std::size_t>(left.size(), std::numeric_limits<uInt>::max());
    stream.next_in = reinterpret_cast<const Bytef*>(left.data());
    stream.avail_in = static_cast<uInt>(given);
    in_member = true;
    const int status = inflate(&stream, Z_NO_FLUSH);
    left.remove_prefix(given - stream.avail_in);
    if (status == Z_STREAM_END) {
      in_member = false;
      inflateReset(&stream);
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      throw InputError(name, fmt::format("is damaged: its compressed data cannot be read ({})",
                                         stream.msg != nullptr ? stream.msg : "zlib"));
    }
  }
};

ByteSource::ByteSource(const std::string& path)
    : file_(path),
      inflater_(std::make_unique<Inflater>()),
      block_(block_bytes),
      allowed_(std::numeric_limits<std::uint64_t>::max()) {
  will_read(path);
  if (kind_of_file(path) == FileKind::folder) throw InputError(path, "is a directory, not a file");
  inflater_->file = open_file(path);
  if (!inflater_->file) throw InputError(path, "cannot be read: " + std::generic_category().message(errno));
}

ByteSource::ByteSource(std::string_view text, std::string file)
    : file_(std::move(file)),
      inflater_(std::make_unique<Inflater>()),
      block_(block_bytes),
      allowed_(std::numeric_limits<std::uint64_t>::max()) {
  inflater_->text = text;
}

ByteSource::~ByteSource() = default;

ByteSource::int_type ByteSource::underflow() {
  if (allowed_ == 0) throw InputError(file_, "holds an event that does not end: is it a profile?");
  const std::size_t count = inflater_->read(block_, file_);
  if (count == 0) return traits_type::eof();
  allowed_ -= std::min<std::uint64_t>(allowed_, count);
  setg(block_.data(), block_.data(), block_.data() + count);
  return traits_type::to_int_type(*gptr());
}

}  // namespace headroom
