// The codes that attempts ran, as rows of `codes`: each once, with the changes since its commit.
//
// Bounded, however often the code is edited: at most kCodesMax codes are told apart, and at most
// kDiffsMax of changes is kept. Writes inside a transaction that the caller begins and ends. One
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "journal/sqlite.h"
#include "model/code.h"

namespace trainyard::journal {

class CodeTable {
 public:
  /// Number of codes that are kept. The code of later attempts is recorded as unknown.
  static constexpr std::size_t kCodesMax = 1'000;
  /// Bytes that are kept of one diff, from its start, and of all diffs together. Only the hash of
  /// later diffs is kept.
  static constexpr std::size_t kDiffMax = std::size_t{1} << 20;
  static constexpr std::size_t kDiffsMax = std::size_t{32} << 20;

  static Result<CodeTable> open(Database& database);

  /// The number of its row, which is made where there is none; 0 where there is no room for it.
  Result<std::uint32_t> put(Instant at, const model::Code& code, const std::string& diff);
  /// 0 where it has no row.
  [[nodiscard]] std::uint32_t number_of(const model::Code& code) const;

  /// An attempt as the tables number it, which has ended or which another one came after.
  struct Row {
    std::uint32_t task = 0;
    std::uint32_t attempt = 0;
  };
  /// It ran that code.
  Result<void> correct(Row row, std::uint32_t code);

  /// After the transaction: what was put is there, or not.
  void keep() { now_.clear(); }
  void drop();

 private:
  struct Statements {
    Statement insert;
    Statement ended;
    Statement attempt;
  };
  explicit CodeTable(Statements statements) : statements_(std::move(statements)) {}
  Result<void> read(Database& database);

  Statements statements_;
  std::map<model::Code, std::uint32_t> numbers_;
  std::uint32_t last_ = 0;                                ///< The highest of them.
  std::size_t bytes_ = 0;                                 ///< Size of all diffs.
  std::vector<std::pair<model::Code, std::size_t>> now_;  ///< Put in this turn, and their bytes.
};

}  // namespace trainyard::journal
