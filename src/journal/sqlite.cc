#include "journal/sqlite.h"

#include <cerrno>
#include <cstddef>
#include <expected>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sqlite3.h>

#include <fmt/format.h>

#include "base/check.h"
#include "sys/descriptor.h"
#include "sys/open_file.h"

namespace trainyard::journal {
namespace {

/// The advice when the file cannot be used.
constexpr const char* kInPlaceOfDamage =
    "put a copy of the file back, or run the job file with --new, or the command again: all tasks "
    "run again in another directory; the results and logs of this run stay in its own";

/// The limit of this process that a system error is about, or nothing.
std::string limit_words(int error) {
  if (error == EMFILE) return ": " + sys::error_text(error);
  return error == EFBIG ? ": file too large, see 'ulimit -f'" : "";
}

/// The last error of `database` in words for a person, with what SQLite says about it.
std::string sqlite_words(sqlite3* database) {
  std::string said = sqlite3_errmsg(database);
  // A full disk is recognized; a quota or a limit of file sizes is not.
  if (sqlite3_extended_errcode(database) == SQLITE_IOERR_WRITE) {
    return fmt::format(
        "cannot be written because of its disk, a quota or a limit such as 'ulimit -f' ({})", said);
  }
  const int code = sqlite3_errcode(database);
  // After any other code the system error is that of an earlier one.
  if (code == SQLITE_IOERR || code == SQLITE_CANTOPEN) {
    said += limit_words(sqlite3_system_errno(database));
  }
  switch (code) {
    case SQLITE_FULL:
      return fmt::format("its disk is full ({})", said);
    case SQLITE_IOERR:
      return fmt::format("cannot be read or written ({})", said);
    case SQLITE_CORRUPT:
      return damage_words(said);
    case SQLITE_NOTADB:
      return fmt::format("is not a journal of trainyard ({}); {}", said, kInPlaceOfDamage);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return fmt::format("is held by another process ({})", said);
    case SQLITE_READONLY:
      return fmt::format("must not be written ({})", said);
    case SQLITE_CANTOPEN:
      return fmt::format("cannot be opened ({})", said);
    default:
      return said;
  }
}

/// Whether it is a fault of the machine, as for Error::of_machine.
bool is_of_machine(sqlite3* database) {
  const int code = sqlite3_errcode(database);
  if (code == SQLITE_FULL || code == SQLITE_NOMEM) return true;
  return (code == SQLITE_IOERR || code == SQLITE_CANTOPEN) &&
         sys::is_of_machine(sqlite3_system_errno(database));
}

Error error_of(sqlite3* database, std::string_view path) {
  Error error{fmt::format("journal '{}': {}", path, sqlite_words(database))};
  error.of_machine = is_of_machine(database);
  return error;
}

Error error_of(sqlite3* database) {
  const char* path = sqlite3_db_filename(database, "main");
  return error_of(database, path == nullptr ? "" : path);
}

int flags_for(Database::Access access) {
  // Each connection belongs to one thread, so SQLite need not lock it.
  switch (access) {
    case Database::Access::Read:
    case Database::Access::ReadUnchanging:
      return SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI;
    case Database::Access::Write:
      return SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI;
    case Database::Access::Create:
      return SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI;
  }
  return 0;
}

/// `path` as a URI: the only form that can say "immutable".
std::string uri_for(std::string_view path, Database::Access access) {
  std::string uri = path.starts_with('/') ? "file://" : "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      uri.push_back(c);
    }
  }
  if (access == Database::Access::ReadUnchanging) uri += "?immutable=1";
  return uri;
}

}  // namespace

std::string damage_words(std::string_view found) {
  return fmt::format("is damaged ({}); {}", found, kInPlaceOfDamage);
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::stop() {
  sqlite3_reset(statement_.get());
  bind_error_ = SQLITE_OK;
}

void Statement::bind(int place, std::int64_t value) {
  const int code = sqlite3_bind_int64(statement_.get(), place, value);
  if (code != SQLITE_OK) bind_error_ = code;
}

void Statement::bind(int place, double value) {
  const int code = sqlite3_bind_double(statement_.get(), place, value);
  if (code != SQLITE_OK) bind_error_ = code;
}

void Statement::bind(int place, std::string_view value) {
  // An empty view may have no address, which SQLite would take for NULL.
  const char* start = value.empty() ? "" : value.data();
  const int code =
      sqlite3_bind_text64(statement_.get(), place, start, value.size(), SQLITE_STATIC, SQLITE_UTF8);
  if (code != SQLITE_OK) bind_error_ = code;
}

void Statement::bind(int place, std::nullopt_t) {
  const int code = sqlite3_bind_null(statement_.get(), place);
  if (code != SQLITE_OK) bind_error_ = code;
}

Result<bool> Statement::next() {
  check(bind_error_ != SQLITE_RANGE, "a statement with a place for each value");
  if (bind_error_ == SQLITE_OK) {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) {
      sqlite3_reset(statement_.get());
      return false;
    }
  }
  Error error = error_of(sqlite3_db_handle(statement_.get()));
  stop();
  return std::unexpected(std::move(error));
}

Result<void> Statement::finish() {
  while (true) {
    Result<bool> row = next();
    if (!row) return std::unexpected(std::move(row.error()));
    if (!*row) return {};
  }
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

int Statement::small(int column) const { return sqlite3_column_int(statement_.get(), column); }

double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::string_view Statement::text(int column) const {
  const void* start = sqlite3_column_text(statement_.get(), column);
  if (start == nullptr) return {};
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return {static_cast<const char*>(start), static_cast<std::size_t>(size)};
}

bool Statement::null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

void Database::Close::operator()(sqlite3* database) const {
  const int code = sqlite3_close(database);
  check(code == SQLITE_OK, "a database without statements when it is closed");
}

std::optional<Error> Database::refuse_other_files(const std::string& path) {
  for (const std::string_view end : kFileEnds) {
    const std::string file = fmt::format("{}{}", path, end);
    const auto reason = sys::reason_to_refuse_at(file, {.flags = O_RDWR});
    if (!reason) continue;
    // SQLite makes the -shm again from the -wal. Each of the other files may be the only one with
    // rows of the run, also behind a link that the user has made.
    const char* const cure =
        end == "-shm" ? "remove it when the run is not active, as it contains no rows of the run"
                      : "move it away or, if it is the run's own file, replace it with a copy when "
                        "the run is not active";
    return Error{fmt::format("journal '{}' {}; {}", file, *reason, cure)};
  }
  return std::nullopt;
}

Result<Database> Database::open(const std::string& path, Access access) {
  if (std::optional<Error> refused = refuse_other_files(path)) {
    return std::unexpected(std::move(*refused));
  }
  sqlite3* opened = nullptr;
  const int code =
      sqlite3_open_v2(uri_for(path, access).c_str(), &opened, flags_for(access), nullptr);
  Database database(opened);
  if (code != SQLITE_OK) {
    if (opened == nullptr) return std::unexpected(Error{"journal: out of memory"});
    return std::unexpected(error_of(opened, path));
  }
  sqlite3_extended_result_codes(opened, 0);
  return database;
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* prepared = nullptr;
  const int code = sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &prepared, nullptr);
  if (code != SQLITE_OK) return std::unexpected(error_of(database_.get()));
  return Statement(prepared);
}

Result<void> Database::run(const std::string& sql) {
  const int code = sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return std::unexpected(error_of(database_.get()));
  return {};
}

Result<std::int64_t> Database::number(std::string_view sql) {
  Result<Statement> statement = prepare(sql);
  if (!statement) return std::unexpected(std::move(statement.error()));
  const Result<bool> row = statement->next();
  if (!row) return std::unexpected(row.error());
  return *row ? statement->integer(0) : 0;
}

Result<std::string> Database::text(std::string_view sql) {
  Result<Statement> statement = prepare(sql);
  if (!statement) return std::unexpected(std::move(statement.error()));
  const Result<bool> row = statement->next();
  if (!row) return std::unexpected(row.error());
  return std::string(*row ? statement->text(0) : "");
}

bool Database::in_transaction() const { return sqlite3_get_autocommit(database_.get()) == 0; }

void Database::roll_back() { sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr); }

std::optional<Bytes> Database::free_on_disk() const {
  const char* const path = sqlite3_db_filename(database_.get(), "main");
  if (path == nullptr) return std::nullopt;
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(path, error);
  if (error) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(space.available)};
}

std::int64_t Database::rows_changed() const { return sqlite3_changes64(database_.get()); }

Result<void> Database::copy_into(const std::string& path) {
  Result<Statement> copy = prepare("VACUUM INTO ?1");
  if (!copy) return std::unexpected(std::move(copy.error()));
  return copy->run(uri_for(path, Access::Write));
}

void Database::count_log_pages() {
  sqlite3_wal_hook(
      database_.get(),
      [](void* count, sqlite3*, const char*, int pages) {
        *static_cast<int*>(count) = pages;
        return SQLITE_OK;
      },
      log_pages_.get());
}

void Database::empty_log() {
  // A checkpoint that fails, or has to wait for a reader, is done the next time.
  sqlite3_wal_checkpoint_v2(database_.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
}

}  // namespace trainyard::journal
