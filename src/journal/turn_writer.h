// Turns as rows: the effect of each event and change on the tables, and their counts.
//
// Writes inside a transaction that the caller begins and ends. Keeps four bytes and a bit for a
// waiting or ended task, and the row of one under way. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "journal/code_table.h"
#include "journal/event_text.h"
#include "journal/machine_table.h"
#include "journal/samples.h"
#include "journal/sqlite.h"
#include "journal/waiting_table.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/stage_times.h"
#include "model/status.h"
#include "model/turn.h"

namespace trainyard::journal {

/// The states of the tasks of a shape, in the order of the columns of `shapes`.
enum class Counted : std::uint8_t {
  Waiting,
  Running,
  Retrying,
  Finished,
  Failed,
  Skipped,
  Stopped
};
using Counts = std::array<int, 7>;

/// The place of a task that has started.
Counted counted_as(Status status, model::Verdict verdict);

/// The facts about the batches so far that the writer needs.
struct Bookkeeping {
  std::int64_t execution = 1;
  RowNumbers numbers;
  std::uint32_t shapes = 0;  ///< The number of shapes.
  std::vector<std::uint32_t> shape_of_task;
  std::vector<bool> ended;  ///< Whether each task has its verdict.
};

class TurnWriter {
 public:
  /// `database` must outlive it and stay where it is.
  static Result<TurnWriter> open(Database& database, Bookkeeping book);

  /// Writes all of the turn, or stops at the first error, after which the transaction must be given
  /// up.
  Result<void> write(const model::Turn& turn);
  /// Adds an event of the journal's own.
  Result<void> note(Instant at, std::string_view kind, std::string_view data);

  /// Takes in the tasks of its book that are under way as another execution has left them; without
  /// it none is. Before anything is written.
  Result<void> read_live(Database& database);

  /// Grows by what a batch adds (journal/batch_writer.h), between two turns.
  Bookkeeping& book() { return book_; }

  /// After the transaction: what was written is there, or not.
  void keep();
  void drop();

 private:
  /// A row of `live`, or of `ended` as soon as it has a verdict.
  struct Task {
    std::uint32_t attempt = 0;
    Status status = Status::Init;
    model::Verdict verdict = model::Verdict::None;
    Stage stage = Stage::Train;
    model::Failure failure = model::Failure::None;
    int exit_code = 0;
    std::int64_t pid = 0;
    Instant started;
    std::optional<Instant> ended;
    Bytes memory_requested;
    Bytes memory_now;
    Bytes memory_peak;
    bool memory_at_least = false;
    Duration cpu_time{0};
    std::string message;
    bool with_group = false;
    std::optional<Instant> retry_at;
    std::string warning;
    std::string result;
    model::StageTimes times;
    std::string gpus;  ///< The driver's numbers: "0,2".
    Bytes gpu_memory_requested;
    Bytes gpu_memory_now;
    Bytes gpu_memory_peak;
    bool gpu_capped = false;
    Bytes gpu_memory_max;
    std::string capped_by;
    std::uint32_t code = 0;
    std::uint32_t machine = 0;
  };
  struct Statements {
    Statement event;
    Statement batch_put;
    Statement live_put;
    Statement live_delete;
    Statement ended_put;
    Statement ended_read;
    Statement ended_delete;
    Statement attempt_put;
    Statement reached_put;
    Statement said_put;
    Statement learned_put;
    Statement sharing_put;
    Statement traceback_put;
    Statement counts;
    Statement phase;
    Statement stopping;
  };

  struct Tables {
    MachineTable machines;
    SampleTable samples;
    ProgressTable progress;
    WaitingTable waiting;
    CodeTable codes;
  };
  TurnWriter(Statements statements, Tables tables, Bookkeeping book)
      : statements_(std::move(statements)),
        machines_(std::move(tables.machines)),
        samples_(std::move(tables.samples)),
        progress_(std::move(tables.progress)),
        waiting_(std::move(tables.waiting)),
        codes_(std::move(tables.codes)),
        book_(std::move(book)) {}

  Result<void> write_events(const model::Event& event, const model::Decision& decision);
  Result<void> apply(const model::Event& event);
  Result<void> apply(const model::Event& event, const model::Change& change);
  Result<void> apply(Instant at, const model::TaskChanged& change);
  /// A task that has ended waits again: its row is one of `live`, as it was, until its next
  /// attempt.
  Result<void> begin_anew(model::TaskIndex task);
  /// Columns in the order of Task, from `status` to `machine`.
  static Task read_row(const Statement& row);
  Result<void> apply(Instant at, const model::StartAttempt& start);
  void apply(const model::GrantDevice& grant);
  Result<void> apply(const model::Reached& reached);
  Result<void> apply(const model::SaidOfTask& said);
  Result<void> apply(Instant at, const model::MachineJoined& joined);
  Result<void> apply(Instant at, const model::MachineGone& gone);
  Result<void> apply(Instant at, const model::Sampled& sample);
  Result<void> apply(const model::GpusSampled& sample);
  Result<void> apply(Instant at, const model::CodeFound& found);
  /// `command` starts an attempt or gives it its GPUs.
  template <class Command>
  void give(Task& row, const Command& command) const;
  Result<void> write_tasks();
  Result<void> write_ended(std::uint32_t task, const Task& row);
  Result<void> write_counts();

  /// The task as it is by now in this turn; nothing when it is not under way.
  const Task* find(model::TaskIndex task) const;
  /// The task of `key`, to be changed in that attempt. A new attempt puts the one before aside.
  Result<Task*> touch(model::AttemptKey key, Instant at);
  Task* touch_running(model::AttemptKey key);
  void count(model::TaskIndex task, Counted from, Counted to);

  Statements statements_;
  MachineTable machines_;
  SampleTable samples_;
  ProgressTable progress_;
  WaitingTable waiting_;
  CodeTable codes_;
  Bookkeeping book_;
  EventRow event_row_;
  std::unordered_map<std::uint32_t, Task> live_;

  // Changes of this turn so far.
  std::map<std::uint32_t, Task> touched_;
  std::map<std::uint32_t, Counts> counts_;
  std::vector<std::uint32_t> ended_now_;
  std::vector<std::uint32_t> reopened_now_;  ///< Tasks that had ended before this turn.
  /// The names of the GPUs of machines before this turn, if one has joined in it.
  std::optional<std::vector<std::vector<std::string>>> gpus_before_;
};

}  // namespace trainyard::journal
