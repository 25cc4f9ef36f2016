// Writes a batch as rows, a few thousand at a time, between turns. The facts about it that the
// writer of turns needs are added first, so that turns can name it as soon as its rows are there.
//
// Writes inside transactions that the caller begins and ends. One thread.
#pragma once

#include <cstdint>
#include <utility>

#include "base/result.h"
#include "journal/journal.h"
#include "journal/plan_rows.h"
#include "journal/sqlite.h"
#include "journal/turn_writer.h"
#include "model/plan.h"

namespace trainyard::journal {

class BatchWriter {
 public:
  /// Writes the batch itself, its groups and its shapes, and adds them and its tasks to `book`. All
  /// three must outlive it. After an error the book is as it was.
  static Result<BatchWriter> begin(Database& database, const Batch& batch, Bookkeeping& book,
                                   bool complete);

  /// Writes at most this number of the next tasks.
  Result<void> write_more(std::uint32_t at_most);
  [[nodiscard]] bool is_done() const { return written_ == batch_->plan->tasks.size(); }
  /// The transaction was given up; `written_before` tasks had been written before it.
  void forget_last(std::uint32_t written_before) { written_ = written_before; }
  [[nodiscard]] std::uint32_t written() const { return written_; }

  /// Restores the book. The rows of the batch are removed by remove_incomplete_batches().
  void give_up();

  [[nodiscard]] std::uint32_t number() const { return batch_->number; }

 private:
  BatchWriter(const Batch& batch, const model::PlanStart& start, Bookkeeping& book, TaskRows rows)
      : batch_(&batch), start_(start), book_(&book), rows_(std::move(rows)) {}

  const Batch* batch_;
  model::PlanStart start_;
  Bookkeeping* book_;
  TaskRows rows_;
  std::uint32_t written_ = 0;
};

/// Deletes all rows of batches that are not complete; no user was promised these.
Result<void> remove_incomplete_batches(Database& database);

}  // namespace trainyard::journal
