// SQLite behind owners and Results: a Database is an open file, a Statement a prepared one.
//
// Knows nothing of runs and tasks. Every failed call comes back as an Error with the file's path
// and SQLite's own words. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"

struct sqlite3;
struct sqlite3_stmt;

namespace trainyard::journal {

/// "is damaged (...)", and what to do next.
std::string damage_words(std::string_view found);

/// A prepared statement. It holds on to its database: let it go first.
class Statement {
 public:
  /// A statement that must not be used, for one that could not be prepared.
  static Statement none() { return Statement(nullptr); }

  /// Gives values to ?1, ?2, ... and runs it to its end. Rows are dropped. Bound values are used
  /// until the call returns, and not copied.
  template <class... Values>
  Result<void> run(const Values&... values) {
    bind_all(values...);
    return finish();
  }

  /// Gives values to ?1, ?2, ... and starts it; then next() goes from row to row. Bound values must
  /// stay until the last row has been read.
  template <class... Values>
  void ask(const Values&... values) {
    bind_all(values...);
  }

  /// Goes to the next row; false after the last one.
  Result<bool> next();
  /// Lets go of the rows that are left.
  void stop();

  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] int small(int column) const;
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string_view text(int column) const;  ///< Valid until the next row.
  [[nodiscard]] bool null(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  template <class... Values>
  void bind_all(const Values&... values) {
    stop();
    int place = 0;
    (bind(++place, values), ...);
  }
  void bind(int place, std::int64_t value);
  void bind(int place, std::uint8_t value) { bind(place, std::int64_t{value}); }
  void bind(int place, std::uint32_t value) { bind(place, static_cast<std::int64_t>(value)); }
  void bind(int place, int value) { bind(place, static_cast<std::int64_t>(value)); }
  void bind(int place, double value);
  void bind(int place, std::string_view value);
  void bind(int place, const std::string& value) { bind(place, std::string_view(value)); }
  void bind(int place, Bytes value) { bind(place, value.count); }
  void bind(int place, Duration value) { bind(place, static_cast<std::int64_t>(value.count())); }
  void bind(int place, Instant value) { bind(place, value.since_start); }
  void bind(int place, std::nullopt_t);
  template <class Value>
  void bind(int place, const std::optional<Value>& value) {
    value ? bind(place, *value) : bind(place, std::nullopt);
  }
  Result<void> finish();

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bind_error_ = 0;
};

class Database {
 public:
  /// The ends of the names of its files, the database's own first.
  static constexpr std::array<const char*, 4> kFileEnds{"", "-wal", "-shm", "-journal"};

  enum class Access : std::uint8_t {
    Read,
    /// Reads a file that does not change, and makes no files beside it.
    ReadUnchanging,
    Write,
    Create,
  };
  /// An error where one of its files is refused.
  static Result<Database> open(const std::string& path, Access access);

  /// The error for the first of its files in the place of which is something other than a regular
  /// file with one name, for a write through a link would change another file. Links to directories
  /// on the way there are followed.
  static std::optional<Error> refuse_other_files(const std::string& path);

  Result<Statement> prepare(std::string_view sql);
  /// Runs statements without rows, or with rows that are not needed.
  Result<void> run(const std::string& sql);
  /// The first column of the first row; 0 or "" when there is none.
  Result<std::int64_t> number(std::string_view sql);
  Result<std::string> text(std::string_view sql);

  /// Whether a transaction is open: some errors end it by themselves.
  [[nodiscard]] bool in_transaction() const;
  /// Rolls the open transaction back. That cannot fail: the state before it stays.
  void roll_back();
  [[nodiscard]] std::int64_t rows_changed() const;  ///< By the last statement.
  /// The free space on its disk; nothing if that is unknown.
  [[nodiscard]] std::optional<Bytes> free_on_disk() const;

  /// Writes its present content to the empty file at `path`. No transaction may be open.
  Result<void> copy_into(const std::string& path);

  /// Counts the pages in the write-ahead log, and leaves it to the caller to empty it.
  void count_log_pages();
  [[nodiscard]] int log_pages() const { return *log_pages_; }
  /// Moves what it can of the write-ahead log into the database. Waits for the disk.
  void empty_log();

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit Database(sqlite3* database) : database_(database) {}

  std::unique_ptr<int> log_pages_ = std::make_unique<int>(0);  // SQLite holds a pointer to it.
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace trainyard::journal
