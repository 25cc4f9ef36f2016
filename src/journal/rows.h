// The rows of a query, one after the other, for the readers of the journal. No state.
#pragma once

#include <expected>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "journal/sqlite.h"

namespace trainyard::journal {

/// Prepares `sql`, gives it `values`, and calls `row` for each row. Stops early if `row` returns
/// false; it may also return nothing.
template <class Row, class... Values>
Result<void> each(Database& database, std::string_view sql, Row row, const Values&... values) {
  Result<Statement> statement = database.prepare(sql);
  if (!statement) return std::unexpected(std::move(statement.error()));
  statement->ask(values...);
  while (true) {
    const Result<bool> more = statement->next();
    if (!more) return std::unexpected(more.error());
    if (!*more) return {};
    if constexpr (std::is_void_v<std::invoke_result_t<Row&, const Statement&>>) {
      row(*statement);
    } else if (!row(*statement)) {
      return {};
    }
  }
}

/// The same, collecting what `read` makes of each row.
template <class Read, class... Values>
auto collect(Database& database, std::string_view sql, Read read, const Values&... values)
    -> Result<std::vector<std::invoke_result_t<Read, const Statement&>>> {
  std::vector<std::invoke_result_t<Read, const Statement&>> rows;
  const Result<void> done = each(
      database, sql,
      [&](const Statement& row) {
        rows.push_back(read(row));
        return true;
      },
      values...);
  if (!done) return std::unexpected(done.error());
  return rows;
}

}  // namespace trainyard::journal
