#include "journal/batch_writer.h"

#include <algorithm>
#include <expected>

#include "base/time.h"
#include "journal/event_text.h"
#include "model/ids.h"

namespace trainyard::journal {
namespace {

/// Tasks have their index as their number until a job file is edited.
void add_task_numbers(RowNumbers& numbers, std::uint32_t known, std::uint32_t next,
                      std::uint32_t count) {
  if (numbers.tasks.empty() && known == next) return;
  if (numbers.tasks.empty()) {
    numbers.tasks.reserve(known);
    for (std::uint32_t i = 0; i < known; ++i) numbers.tasks.push_back(i);
  }
  for (std::uint32_t i = 0; i < count; ++i) numbers.tasks.push_back(next + i);
}

void cut(Bookkeeping& book, const model::PlanStart& start) {
  book.numbers.groups.resize(start.group);
  if (!book.numbers.tasks.empty()) book.numbers.tasks.resize(start.task);
  book.shapes = start.shape;
  book.shape_of_task.resize(start.task);
  book.ended.resize(start.task);
}

}  // namespace

Result<BatchWriter> BatchWriter::begin(Database& database, const Batch& batch, Bookkeeping& book,
                                       bool complete) {
  const model::Plan& plan = *batch.plan;
  const model::PlanStart start{.group = static_cast<std::uint32_t>(book.numbers.groups.size()),
                               .shape = book.shapes,
                               .task = static_cast<std::uint32_t>(book.shape_of_task.size())};
  // If the disk was full, even the removal of a batch may have failed.
  if (const Result<void> clean = remove_incomplete_batches(database); !clean) {
    return std::unexpected(clean.error());
  }
  const Result<std::uint32_t> group = next_number(database, "groups");
  if (!group) return std::unexpected(group.error());
  const Result<std::uint32_t> task = next_number(database, "tasks");
  if (!task) return std::unexpected(task.error());
  const auto tasks = static_cast<std::uint32_t>(plan.tasks.size());
  for (std::uint32_t i = 0; i < plan.groups.size(); ++i) book.numbers.groups.push_back(*group + i);
  add_task_numbers(book.numbers, start.task, *task, tasks);
  book.shapes += static_cast<std::uint32_t>(plan.shapes.size());
  for (const model::PlannedTask& each : plan.tasks) {
    book.shape_of_task.push_back(
        book.numbers.of(model::ShapeIndex{start.shape + each.shape.value}));
    book.ended.push_back(!each.is_open());
  }
  Result<void> done = put_batch(database, batch, Instant{}, complete);
  for (std::uint32_t i = 0; done && i < plan.groups.size(); ++i) {
    done = put_group(database, *group + i, batch, model::GroupIndex{i});
  }
  if (done) done = put_shapes(database, plan, start, book.numbers);
  if (done) done = put_task_needs(database, batch, start, book.numbers);
  Result<TaskRows> rows = done ? TaskRows::open(database, batch, start, book.numbers)
                               : std::unexpected(std::move(done.error()));
  if (rows) return BatchWriter(batch, start, book, std::move(*rows));
  cut(book, start);
  return std::unexpected(std::move(rows.error()));
}

Result<void> BatchWriter::write_more(std::uint32_t at_most) {
  const auto tasks = static_cast<std::uint32_t>(batch_->plan->tasks.size());
  const std::uint32_t end = written_ + std::min(at_most, tasks - written_);
  for (; written_ < end; ++written_) {
    const Result<void> inserted = rows_.insert(model::TaskIndex{written_});
    if (!inserted) return inserted;
  }
  return {};
}

void BatchWriter::give_up() { cut(*book_, start_); }

Result<void> remove_incomplete_batches(Database& database) {
  return database.run(
      "DELETE FROM tasks WHERE batch IN (SELECT number FROM batches WHERE complete = 0);"
      "DELETE FROM shapes WHERE group_number IN (SELECT g.number FROM groups g JOIN batches b ON "
      "b.number = g.batch WHERE b.complete = 0);"
      "DELETE FROM groups WHERE batch IN (SELECT number FROM batches WHERE complete = 0);"
      "DELETE FROM batches WHERE complete = 0");
}

}  // namespace trainyard::journal
