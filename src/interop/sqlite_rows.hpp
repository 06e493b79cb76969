// Rows of the tables of an SQLite database that others wrote, of which nothing is believed: it is opened for reading only, what
// its text would have SQLite run is not run, and how long a query may take follows from the database's size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace headroom {

// Whether bytes begin as an SQLite database does.
inline constexpr std::string_view sqlite_magic("SQLite format 3\0", 16);

class SqliteRows;

class SqliteDatabase {
 public:
  // Throws InputError when the file cannot be opened or is no database.
  explicit SqliteDatabase(std::string path);
  // Of a database in memory; `file` is its name, and `bytes` live as long as it does.
  SqliteDatabase(std::string_view bytes, std::string file);

  [[nodiscard]] const std::string& file() const { return file_; }

  // Columns of the table of this name that are stored; none where there is no such table. Views and virtual tables are none.
  [[nodiscard]] std::vector<std::string> columns_of(const std::string& table) const;

  // The rows of a SELECT. Throws InputError naming what is wrong with the database, here and with every row.
  [[nodiscard]] SqliteRows rows(const std::string& select) const;

 private:
  friend class SqliteRows;
  struct Close {
    void operator()(sqlite3* database) const;
  };
  void open(std::string_view bytes);  // which outlive this
  void limit(std::size_t bytes);
  [[noreturn]] void refuse(int code) const;

  std::string file_;
  std::unique_ptr<sqlite3, Close> handle_;
  std::unique_ptr<std::int64_t> steps_left_;  // where SQLite finds it, wherever this is moved
};

class SqliteRows {
 public:
  SqliteRows(const SqliteDatabase& database, const std::string& select);

  bool next();
  // Of the row under way, by the column's place in the SELECT. Nothing where it is of another type.
  [[nodiscard]] std::optional<std::int64_t> integer(int column) const;
  [[nodiscard]] std::string_view text(int column) const;   // until next()
  [[nodiscard]] std::string_view bytes(int column) const;  // until next()

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  const SqliteDatabase& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

}  // namespace headroom
