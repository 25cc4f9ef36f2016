#include "journal/code_table.h"

#include <algorithm>
#include <expected>
#include <string_view>

#include "journal/rows.h"

namespace trainyard::journal {

Result<CodeTable> CodeTable::open(Database& database) {
  Result<Statement> insert = database.prepare("INSERT INTO codes VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
  if (!insert) return std::unexpected(std::move(insert.error()));
  Result<Statement> ended =
      database.prepare("UPDATE ended SET code = ?3 WHERE task = ?1 AND attempt = ?2");
  if (!ended) return std::unexpected(std::move(ended.error()));
  Result<Statement> attempt =
      database.prepare("UPDATE attempts SET code = ?3 WHERE task = ?1 AND attempt = ?2");
  if (!attempt) return std::unexpected(std::move(attempt.error()));
  CodeTable table(
      {.insert = std::move(*insert), .ended = std::move(*ended), .attempt = std::move(*attempt)});
  if (Result<void> read = table.read(database); !read) {
    return std::unexpected(std::move(read.error()));
  }
  return table;
}

Result<void> CodeTable::read(Database& database) {
  return each(database,
              "SELECT number, root, git_commit, changes, length(CAST(git_diff AS BLOB)) FROM codes",
              [&](const Statement& row) {
                const auto number = static_cast<std::uint32_t>(row.integer(0));
                last_ = std::max(last_, number);
                bytes_ += static_cast<std::size_t>(row.integer(4));
                numbers_[{.root = std::string(row.text(1)),
                          .commit = std::string(row.text(2)),
                          .changes = std::string(row.text(3))}] = number;
              });
}

Result<std::uint32_t> CodeTable::put(Instant at, const model::Code& code, const std::string& diff) {
  if (const std::uint32_t known = number_of(code); known != 0) return known;
  if (numbers_.size() >= kCodesMax) return std::uint32_t{0};
  std::string_view kept = std::string_view(diff).substr(0, kDiffMax);
  if (bytes_ + kept.size() > kDiffsMax) kept = {};
  const Result<void> put =
      statements_.insert.run(last_ + 1, at, code.root, code.commit, code.changes, kept);
  if (!put) return std::unexpected(put.error());
  bytes_ += kept.size();
  now_.emplace_back(code, kept.size());
  return numbers_[code] = ++last_;
}

std::uint32_t CodeTable::number_of(const model::Code& code) const {
  const auto found = numbers_.find(code);
  return found == numbers_.end() ? 0 : found->second;
}

Result<void> CodeTable::correct(Row row, std::uint32_t code) {
  Result<void> done = statements_.ended.run(row.task, row.attempt, code);
  if (done) done = statements_.attempt.run(row.task, row.attempt, code);
  return done;
}

void CodeTable::drop() {
  for (const auto& [code, bytes] : now_) {
    numbers_.erase(code);
    bytes_ -= bytes;
    --last_;
  }
  now_.clear();
}

}  // namespace trainyard::journal
