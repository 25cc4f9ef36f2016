#include "journal/upgrade.h"

#include <algorithm>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "journal/journal_file.h"
#include "journal/schema.h"
#include "journal/sqlite.h"
#include "sys/files.h"

namespace trainyard::journal {
namespace {

using Names = std::vector<std::string>;

/// The first column of all rows.
Result<Names> names_by(Database& database, const std::string& sql) {
  Result<Statement> rows = database.prepare(sql);
  if (!rows) return std::unexpected(std::move(rows.error()));
  Names names;
  while (true) {
    const Result<bool> row = rows->next();
    if (!row) return std::unexpected(row.error());
    if (!*row) return names;
    names.emplace_back(rows->text(0));
  }
}

/// Everything of a kind in the schema, as SQLite names it: "table", "view", "index".
Result<Names> things(Database& database, std::string_view kind) {
  return names_by(
      database,
      fmt::format("SELECT name FROM sqlite_schema WHERE type = '{}' AND sql IS NOT NULL", kind));
}

/// In quotes.
Result<Names> columns_of(Database& database, std::string_view table) {
  return names_by(database,
                  fmt::format("SELECT '\"' || name || '\"' FROM pragma_table_info('{}')", table));
}

/// The columns that an older table had not, and that must have a value.
std::string_view more_columns(std::string_view table) {
  if (table == "groups") return ", batch, directory, called";
  if (table == "tasks") return ", batch";
  return "";
}

/// Before batches there was one, and each group had the directory of its name.
std::string_view their_values(std::string_view table) {
  if (table == "groups") return ", 1, name, name";
  if (table == "tasks") return ", 1";
  return "";
}

/// The rows of a table of before, in as many of its columns as there still are.
Result<void> take_rows(Database& database, const std::string& table) {
  const Result<Names> old = columns_of(database, "old_" + table);
  if (!old) return std::unexpected(old.error());
  const Result<Names> now = columns_of(database, table);
  if (!now) return std::unexpected(now.error());
  if (now->empty()) return {};  // There is none of that name any more.
  std::string columns;
  for (const std::string& column : *old) {
    if (std::ranges::find(*now, column) == now->end()) continue;
    columns += (columns.empty() ? "" : ", ") + column;
  }
  // A table that has the column already has its values, too.
  const bool has_more = columns.contains("\"batch\"");
  return database.run(fmt::format("INSERT INTO {0} ({1}{2}) SELECT {1}{3} FROM old_{0}", table,
                                  columns, has_more ? "" : more_columns(table),
                                  has_more ? "" : their_values(table)));
}

/// All tables are made anew, as they are made for a run that begins, and filled with what there
/// was.
Result<void> rebuild(Database& database) {
  for (const std::string_view kind : {"view", "index"}) {
    const Result<Names> names = things(database, kind);
    if (!names) return std::unexpected(names.error());
    for (const std::string& name : *names) {
      if (Result<void> gone = database.run(fmt::format("DROP {} {}", kind, name)); !gone) {
        return gone;
      }
    }
  }
  const Result<Names> tables = things(database, "table");
  if (!tables) return std::unexpected(tables.error());
  Result<void> done;
  for (const std::string& table : *tables) {
    done = database.run(fmt::format("ALTER TABLE {0} RENAME TO old_{0}", table));
    if (!done) return done;
  }
  done = database.run(kSchema);
  for (const std::string& table : *tables) {
    if (done) done = take_rows(database, table);
    if (done) done = database.run(fmt::format("DROP TABLE old_{}", table));
  }
  if (done) done = database.run(kTasksIndex);
  if (!done) return done;
  // Before there were batches the run was one, and before there were machines each execution had
  // the one on which it ran.
  return database.run(
      "INSERT OR IGNORE INTO batches SELECT 1, 1, 0, command_line, job_file, '', config_file, "
      "settings, '[]' "
      "FROM executions WHERE number = 1;"
      "INSERT OR IGNORE INTO machines SELECT number, 0, host, 0, 0, started_ms, NULL, '', NULL, "
      "NULL "
      "FROM executions");
}

}  // namespace

Result<void> bring_up_to_date(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  if (std::optional<Error> theirs = not_ours(path)) return std::unexpected(std::move(*theirs));
  Result<Database> database = Database::open(path, Database::Access::Write);
  if (!database) return std::unexpected(std::move(database.error()));
  if (Result<void> patient = database->run("PRAGMA busy_timeout = 10000"); !patient) return patient;
  const Result<std::int64_t> application = database->number("PRAGMA application_id");
  if (!application) return std::unexpected(application.error());
  const Result<std::int64_t> version = database->number("PRAGMA user_version");
  if (!version) return std::unexpected(version.error());
  const bool is_old =
      *application == kApplicationId && *version >= kOldestVersion && *version < kSchemaVersion;
  if (!is_old) return {};
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const Result<sys::RunLock> lock = sys::RunLock::take(directory);
  if (!lock) return std::unexpected(lock.error());
  Result<void> done = database->run("BEGIN IMMEDIATE");
  if (done) done = rebuild(*database);
  if (done) done = database->run("COMMIT");
  if (!done && database->in_transaction()) database->roll_back();
  if (!done) return std::unexpected(std::move(done.error()).in("bringing it up to date"));
  return {};
}

}  // namespace trainyard::journal
