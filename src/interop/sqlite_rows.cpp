#include "interop/sqlite_rows.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

#include "headroom/core/error.hpp"
#include "io/command_files.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

constexpr int largest_value = 64 << 20;         // bytes of a text or a blob
constexpr int steps_between_looks = 1'000'000;  // of SQLite's virtual machine
constexpr std::int64_t least_steps = 10'000'000;
// Reading a row takes SQLite some twenty steps, and a row takes some ten bytes at least.
constexpr std::int64_t steps_per_byte = 100;

std::string name_in_sql(const std::string& name) {
  std::string quoted = "'";
  for (const char c : name) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

void SqliteDatabase::Close::operator()(sqlite3* database) const { sqlite3_close(database); }
void SqliteRows::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

SqliteDatabase::SqliteDatabase(std::string path)
    : file_(std::move(path)), steps_left_(std::make_unique<std::int64_t>(0)) {
  will_read(file_);
  if (const std::string* const text = command_files().given(file_)) {
    open(*text);
    return;
  }
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(file_.c_str(), &handle, SQLITE_OPEN_READONLY, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) refuse(code);
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(file_, none);
  limit(none ? 0 : static_cast<std::size_t>(size));
}

SqliteDatabase::SqliteDatabase(std::string_view bytes, std::string file)
    : file_(std::move(file)), steps_left_(std::make_unique<std::int64_t>(0)) {
  open(bytes);
}

void SqliteDatabase::open(std::string_view bytes) {
  sqlite3* handle = nullptr;
  int code = sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_READWRITE, nullptr);
  handle_.reset(handle);
  if (code == SQLITE_OK) {
    const auto size = static_cast<sqlite3_int64>(bytes.size());
    // It is read only, whatever the type of the pointer.
    auto* const data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    code = sqlite3_deserialize(handle, "main", data, size, size, SQLITE_DESERIALIZE_READONLY);
  }
  if (code != SQLITE_OK) refuse(code);
  limit(bytes.size());
}

void SqliteDatabase::limit(std::size_t bytes) {
  sqlite3* const handle = handle_.get();
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, largest_value);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  *steps_left_ = steps_per_byte * static_cast<std::int64_t>(bytes) + least_steps;
  const auto look = [](void* left) {
    auto& steps = *static_cast<std::int64_t*>(left);
    steps -= steps_between_looks;
    return steps < 0 ? 1 : 0;
  };
  sqlite3_progress_handler(handle, steps_between_looks, look, steps_left_.get());
}

void SqliteDatabase::refuse(int code) const {
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      throw InputError(file_, "is no SQLite database, or is encrypted or damaged at its beginning");
    case SQLITE_CORRUPT: throw InputError(file_, "is a damaged or cut off SQLite database: export it again");
    case SQLITE_INTERRUPT:
      throw InputError(file_, "is a damaged SQLite database: its tables hold more rows than it has room for");
    case SQLITE_TOOBIG:
      throw InputError(file_, fmt::format("holds a text or blob of more than {} MiB", largest_value >> 20));
    case SQLITE_READONLY:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw InputError(file_,
                       "is being written, or was left half-written beside its journal: export it again");
    default:
      throw InputError(file_, fmt::format("cannot be read as an SQLite database: {}",
                                          printable(handle_ ? sqlite3_errmsg(handle_.get()) : "no memory")));
  }
}

std::vector<std::string> SqliteDatabase::columns_of(const std::string& table) const {
  const std::string name = name_in_sql(table);
  SqliteRows stored =
      rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name = " + name);
  std::vector<std::string> columns;
  if (!stored.next()) return columns;
  // Leaves out columns that are computed.
  SqliteRows named = rows("SELECT name FROM pragma_table_info(" + name + ")");
  while (named.next()) columns.emplace_back(named.text(0));
  return columns;
}

SqliteRows SqliteDatabase::rows(const std::string& select) const { return {*this, select}; }

SqliteRows::SqliteRows(const SqliteDatabase& database, const std::string& select) : database_(database) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(database.handle_.get(), select.c_str(), static_cast<int>(select.size()),
                                      &statement, nullptr);
  statement_.reset(statement);
  if (code != SQLITE_OK) database.refuse(code);
}

bool SqliteRows::next() {
  const int code = sqlite3_step(statement_.get());
  if (code != SQLITE_ROW && code != SQLITE_DONE) database_.refuse(code);
  return code == SQLITE_ROW;
}

std::optional<std::int64_t> SqliteRows::integer(int column) const {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(statement_.get(), column);
}

std::string_view SqliteRows::text(int column) const {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_TEXT) return {};
  return bytes(column);
}

std::string_view SqliteRows::bytes(int column) const {
  const void* const data = sqlite3_column_blob(statement_.get(), column);
  if (data == nullptr) return {};
  return {static_cast<const char*>(data),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

}  // namespace headroom
