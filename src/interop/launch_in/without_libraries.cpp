// Where the program is built without yaml-cpp, zlib and SQLite, as for a browser (cmake/web.cmake): what they read is refused.
#include "headroom/core/error.hpp"
#include "interop/byte_source.hpp"
#include "interop/launch_in/tree.hpp"
#include "interop/sqlite_rows.hpp"

namespace headroom {
namespace {

[[noreturn]] void cannot_read(const std::string& file, const std::string& what) {
  throw InputError(file, "is " + what + ", which this build cannot read: use the program itself");
}

}  // namespace

TreeNode parse_yaml(std::string_view, const std::string& file) { cannot_read(file, "YAML"); }

struct ByteSource::Inflater {};
ByteSource::ByteSource(const std::string& path) { cannot_read(path, "a log or a profile"); }
ByteSource::ByteSource(std::string_view, std::string file) { cannot_read(file, "a log or a profile"); }
ByteSource::~ByteSource() = default;
ByteSource::int_type ByteSource::underflow() { return traits_type::eof(); }

SqliteDatabase::SqliteDatabase(std::string path) { cannot_read(path, "a database"); }
SqliteDatabase::SqliteDatabase(std::string_view, std::string file) { cannot_read(file, "a database"); }
std::vector<std::string> SqliteDatabase::columns_of(const std::string&) const { return {}; }
SqliteRows SqliteDatabase::rows(const std::string& select) const { return {*this, select}; }
void SqliteDatabase::Close::operator()(sqlite3*) const {}

SqliteRows::SqliteRows(const SqliteDatabase& database, const std::string&) : database_(database) {}
bool SqliteRows::next() { return false; }
std::optional<std::int64_t> SqliteRows::integer(int) const { return {}; }
std::string_view SqliteRows::text(int) const { return {}; }
std::string_view SqliteRows::bytes(int) const { return {}; }
void SqliteRows::Finalize::operator()(sqlite3_stmt*) const {}

}  // namespace headroom
