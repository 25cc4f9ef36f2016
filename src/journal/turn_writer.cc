#include "journal/turn_writer.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "base/check.h"
#include "base/match.h"
#include "journal/journal.h"

namespace trainyard::journal {
namespace {

/// Prepares statement after statement, and keeps the first error.
class Preparing {
 public:
  explicit Preparing(Database& database) : database_(database) {}

  Statement operator()(std::string_view sql) {
    Result<Statement> statement = database_.prepare(sql);
    if (statement) return std::move(*statement);
    if (!error_) error_ = std::move(statement.error());
    return Statement::none();
  }

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  Database& database_;
  std::optional<Error> error_;
};

}  // namespace

Counted counted_as(Status status, model::Verdict verdict) {
  switch (verdict) {
    case model::Verdict::Finished:
      return Counted::Finished;
    case model::Verdict::Failed:
      return Counted::Failed;
    case model::Verdict::Skipped:
    case model::Verdict::NotSelected:
    case model::Verdict::NotNeeded:
      return Counted::Skipped;
    case model::Verdict::Stopped:
      return Counted::Stopped;
    case model::Verdict::None:
      break;
  }
  switch (status) {
    case Status::Available:
    case Status::Loading:
    case Status::Training:
    case Status::Finished:
    case Status::Unknown:
      return Counted::Running;
    case Status::Interrupt:
      return Counted::Retrying;
    default:
      return Counted::Waiting;
  }
}

Result<TurnWriter> TurnWriter::open(Database& database, Bookkeeping book) {
  Preparing prepare(database);
  Statements statements{
      .event = prepare("INSERT INTO events (execution, at_ms, kind, task, attempt, data) "
                       "VALUES (?1, ?2, ?3, ?4, ?5, ?6)"),
      // A resumed run adds its batches again, which were added before.
      .batch_put = prepare(
          "UPDATE batches SET complete = 1, added_ms = ?2 WHERE number = ?1 AND NOT complete"),
      .live_put =
          prepare("INSERT OR REPLACE INTO live VALUES "
                  "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, "
                  "?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31)"),
      .live_delete = prepare("DELETE FROM live WHERE task = ?1"),
      .ended_put = prepare("INSERT INTO ended VALUES "
                           "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, "
                           "?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29)"),
      .ended_read = prepare(
          "SELECT status, stage, attempt, failure, exit_code, 0, started_ms, ended_ms, "
          "memory_requested, 0, memory_peak, cpu_ms, message, warning, result, load_numbers, "
          "train_numbers, load_ms, train_ms, gpus, gpu_memory_requested, 0, gpu_memory_peak, "
          "gpu_memory_max, capped_by, code, machine, NULL, verdict FROM ended WHERE task = ?1"),
      .ended_delete = prepare("DELETE FROM ended WHERE task = ?1"),
      .attempt_put = prepare("INSERT OR REPLACE INTO attempts VALUES "
                             "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, "
                             "?15, ?16, ?17, ?18, ?19, ?20)"),
      .reached_put = prepare("INSERT OR REPLACE INTO reached VALUES "
                             "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"),
      .said_put = prepare("INSERT OR REPLACE INTO said VALUES (?1, ?2, ?3)"),
      .learned_put = prepare("UPDATE shapes SET learned_memory = ?2, learned_gpu_memory = ?3, "
                             "learned_tasks = ?4 WHERE number = ?1"),
      .sharing_put = prepare("UPDATE shapes SET sharing_best = ?2, sharing_factor = ?3, "
                             "sharing_tasks = ?4, sharing_max = ?5 WHERE number = ?1"),
      .traceback_put = prepare("INSERT OR REPLACE INTO tracebacks VALUES (?1, ?2, ?3)"),
      .counts = prepare("UPDATE shapes SET waiting = waiting + ?2, running = running + ?3, "
                        "retrying = retrying + ?4, finished = finished + ?5, failed = failed + ?6, "
                        "skipped = skipped + ?7, stopped = stopped + ?8 WHERE number = ?1"),
      .phase = prepare("UPDATE groups SET phase = ?2, message = ?3 WHERE number = ?1"),
      .stopping = prepare("UPDATE executions SET how = ?2 WHERE number = ?1"),
  };
  if (const std::optional<Error>& error = prepare.error()) return std::unexpected(*error);
  Result<MachineTable> machines = MachineTable::open(database, book.execution);
  if (!machines) return std::unexpected(std::move(machines.error()));
  Result<SampleTable> samples = SampleTable::open(database);
  if (!samples) return std::unexpected(std::move(samples.error()));
  Result<ProgressTable> progress = ProgressTable::open(database);
  if (!progress) return std::unexpected(std::move(progress.error()));
  Result<WaitingTable> waiting = WaitingTable::open(database);
  if (!waiting) return std::unexpected(std::move(waiting.error()));
  Result<CodeTable> codes = CodeTable::open(database);
  if (!codes) return std::unexpected(std::move(codes.error()));
  return TurnWriter(std::move(statements),
                    {.machines = std::move(*machines),
                     .samples = std::move(*samples),
                     .progress = std::move(*progress),
                     .waiting = std::move(*waiting),
                     .codes = std::move(*codes)},
                    std::move(book));
}

Result<void> TurnWriter::write(const model::Turn& turn) {
  check(turn.events.size() == turn.decisions.size(), "a decision for each event of a turn");
  for (std::size_t i = 0; i < turn.events.size(); ++i) {
    const model::Event& event = turn.events[i];
    const model::Decision& decision = turn.decisions[i];
    // The decision may name the GPUs of a machine that joins with the event.
    Result<void> done = apply(event);
    if (done) done = write_events(event, decision);
    for (const model::Change& change : decision.changes) {
      if (done) done = apply(event, change);
    }
    for (const model::Command& command : decision.commands) {
      if (const auto* grant = std::get_if<model::GrantDevice>(&command)) apply(*grant);
      const auto* start = std::get_if<model::StartAttempt>(&command);
      if (done && start != nullptr) done = apply(event.at, *start);
    }
    if (!done) return done;
  }
  Result<void> done = write_tasks();
  if (done) done = write_counts();
  return done;
}

Result<void> TurnWriter::note(Instant at, std::string_view kind, std::string_view data) {
  return statements_.event.run(book_.execution, at, kind, std::nullopt, std::nullopt, data);
}

Result<void> TurnWriter::write_events(const model::Event& event, const model::Decision& decision) {
  EventRows rows(event, decision, book_.numbers);
  while (rows.next(event_row_)) {
    const Result<void> written =
        statements_.event.run(book_.execution, event.at, event_row_.kind, event_row_.task,
                              event_row_.attempt, event_row_.data);
    if (!written) return written;
  }
  return {};
}

Result<void> TurnWriter::apply(const model::Event& event) {
  if (const auto* started = std::get_if<model::AttemptStarted>(&event.what)) {
    Task* row = touch_running(started->key);
    if (row == nullptr) return {};
    row->pid = started->pid;
    row->started = model::moment_of(event, started->key);
    row->capped_by = started->capped_by;
    row->code = started->code ? codes_.number_of(*started->code) : 0;
  } else if (const auto* ended = std::get_if<model::AttemptEnded>(&event.what)) {
    Task* row = touch_running(ended->key);
    if (row == nullptr) return {};
    row->pid = 0;
    row->ended = std::max(model::moment_of(event, ended->key), row->started);
    row->times.end_by(*row->ended);
    row->memory_now = {};
    row->memory_at_least =
        ended->usage.memory_at_least && ended->usage.memory_peak > row->memory_peak;
    row->memory_peak = std::max(row->memory_peak, ended->usage.memory_peak);
    row->cpu_time = ended->usage.cpu_time;
    row->gpu_memory_now = {};
    row->gpu_memory_peak = std::max(row->gpu_memory_peak, ended->usage.gpu_memory_peak);
    row->gpu_capped = ended->usage.gpu_capped;
    row->result = ended->result;
    row->warning = ended->warning;
  } else if (const auto* report = std::get_if<model::StageReported>(&event.what)) {
    if (Task* row = touch_running(report->key); row != nullptr && !report->capped_by.empty()) {
      row->capped_by = report->capped_by;
    }
    if (report->traceback.empty()) return {};
    return statements_.traceback_put.run(book_.numbers.of(report->key.task), report->key.attempt,
                                         report->traceback);
  } else if (const auto* progress = std::get_if<model::Progressed>(&event.what)) {
    return progress_.add(event.at, book_.numbers.of(progress->key.task), *progress);
  } else if (const auto* sample = std::get_if<model::Sampled>(&event.what)) {
    return apply(event.at, *sample);
  } else if (const auto* gpus = std::get_if<model::GpusSampled>(&event.what)) {
    return apply(*gpus);
  } else if (const auto* batch = std::get_if<model::BatchAdded>(&event.what)) {
    return statements_.batch_put.run(batch->number, event.at);
  } else if (const auto* keeper = std::get_if<model::KeeperSilent>(&event.what)) {
    return machines_.hear(event.at, *keeper);
  } else if (std::holds_alternative<model::InterruptAsked>(event.what)) {
    // Readers of the journal must not take the run for one that starts tasks while its tasks end.
    return statements_.stopping.run(book_.execution, std::string_view(kInterrupted));
  } else if (const auto* joined = std::get_if<model::MachineJoined>(&event.what)) {
    return apply(event.at, *joined);
  } else if (const auto* gone = std::get_if<model::MachineGone>(&event.what)) {
    return apply(event.at, *gone);
  } else if (const auto* code = std::get_if<model::CodeFound>(&event.what)) {
    return apply(event.at, *code);
  }
  return {};
}

template <class Command>
void TurnWriter::give(Task& row, const Command& command) const {
  row.memory_requested = command.promise.memory;
  row.gpu_memory_requested = command.promise.gpu_memory;
  row.gpu_memory_max = command.gpu_memory_max;
  row.machine = command.site.machine.value;
  row.gpus.clear();
  for (const model::GpuIndex gpu : command.site.gpus) {
    row.gpus += fmt::format("{}{}", row.gpus.empty() ? "" : ",",
                            book_.numbers.of(command.site.machine, gpu));
  }
}

Result<void> TurnWriter::apply(const model::Event& event, const model::Change& change) {
  return match(
      change,
      [&](const model::TaskChanged& task) {
        return apply(model::moment_of(event, task.key), task);
      },
      [&](const model::GroupChanged& group) {
        return statements_.phase.run(book_.numbers.of(group.group), std::to_underlying(group.phase),
                                     group.message);
      },
      [&](const model::ReasonChanged& reason) {
        std::optional<std::uint32_t> first;
        if (reason.reason.first) first = book_.numbers.of(*reason.reason.first);
        return waiting_.put(book_.numbers.of(reason.shape), reason.reason, first);
      },
      [&](const model::HeadroomSeen& seen) { return waiting_.put(seen.machine, seen.headroom); },
      [&](const model::Reached& reached) { return apply(reached); },
      [&](const model::SaidOfTask& said) { return apply(said); },
      [&](const model::Learned& learned) {
        return statements_.learned_put.run(book_.numbers.of(learned.shape), learned.memory,
                                           learned.gpu_memory, learned.tasks);
      },
      [&](const model::SharingMeasured& it) {
        return statements_.sharing_put.run(book_.numbers.of(it.shape), it.to_a_gpu, it.factor,
                                           it.tasks, it.to_a_gpu_max);
      });
}

Result<void> TurnWriter::apply(Instant at, const model::TaskChanged& change) {
  const model::TaskIndex task = change.key.task;
  if (change.status == Status::Init && change.verdict == model::Verdict::None) {
    return begin_anew(task);
  }
  check(!book_.ended.at(task.value), "a task that has no verdict before it changes");
  const Task* before = find(task);
  const Counted from =
      before == nullptr ? Counted::Waiting : counted_as(before->status, model::Verdict::None);
  count(task, from, counted_as(change.status, change.verdict));
  if (change.verdict != model::Verdict::None) {
    book_.ended[task.value] = true;
    ended_now_.push_back(task.value);
  }
  if (before == nullptr && change.verdict != model::Verdict::None) {
    // The task has not started in this execution: its verdict is all there is. There may be very
    // many such tasks at once.
    return write_ended(task.value, {.status = change.status,
                                    .verdict = change.verdict,
                                    .stage = change.stage,
                                    .failure = change.failure,
                                    .exit_code = change.exit_code,
                                    .ended = at,
                                    .message = change.message,
                                    .with_group = change.with_group});
  }
  const Result<Task*> touched = touch(change.key, at);
  if (!touched) return std::unexpected(touched.error());
  Task& row = **touched;
  // A task that fails while it waits, as on a kill or with its group, keeps how its last attempt
  // ended. If the message says that already, the task has failed in this way before.
  const bool waited = row.status == Status::Interrupt || row.status == Status::Init;
  std::string last_end;
  if (waited && change.verdict == model::Verdict::Failed && !row.message.empty()) {
    const std::string of_attempt = fmt::format("; attempt {}: ", row.attempt);
    const std::size_t there = row.message.rfind(of_attempt);
    last_end = there == std::string::npos ? of_attempt + row.message : row.message.substr(there);
  }
  row.status = change.status;
  // A script has loaded from its beginning on when it comes to say so.
  row.times.enter(change.status, change.status == Status::Loading ? row.started : at);
  row.verdict = change.verdict;
  row.stage = change.stage;
  row.retry_at = change.retry_at;
  row.with_group = change.with_group;
  // The outcome of an attempt stays while the next one is only granted.
  if (change.status == Status::Available && row.ended) return {};
  row.failure = change.failure;
  row.exit_code = change.exit_code;
  row.message = change.message + last_end;
  if (change.verdict != model::Verdict::None && !row.ended) row.ended = at;
  return {};
}

Result<void> TurnWriter::apply(const model::SaidOfTask& said) {
  return statements_.said_put.run(book_.numbers.of(said.task), said.on_hold ? 1 : 0, said.priority);
}

Result<void> TurnWriter::apply(const model::Reached& reached) {
  const model::MemoryTries& tries = reached.tries;
  return statements_.reached_put.run(book_.numbers.of(reached.task), reached.memory,
                                     reached.gpu_memory, reached.largest ? 1 : 0, tries.load,
                                     tries.train, tries.preempted, tries.crowded);
}

Result<void> TurnWriter::apply(Instant at, const model::StartAttempt& start) {
  const Result<Task*> touched = touch(start.key, at);
  if (!touched) return std::unexpected(touched.error());
  (*touched)->started = at;
  give(**touched, start);
  return {};
}

void TurnWriter::apply(const model::GrantDevice& grant) {
  Task* row = touch_running(grant.key);
  if (row != nullptr) give(*row, grant);
}

const TurnWriter::Task* TurnWriter::find(model::TaskIndex task) const {
  if (const auto found = touched_.find(task.value); found != touched_.end()) return &found->second;
  if (const auto found = live_.find(task.value); found != live_.end()) return &found->second;
  return nullptr;
}

TurnWriter::Task* TurnWriter::touch_running(model::AttemptKey key) {
  const Task* known = find(key.task);
  // A report of an attempt that was followed by another is in the events only.
  if (known == nullptr || known->attempt != key.attempt) return nullptr;
  return &touched_.try_emplace(key.task.value, *known).first->second;
}

Result<TurnWriter::Task*> TurnWriter::touch(model::AttemptKey key, Instant at) {
  const Task* known = find(key.task);
  Task& row =
      touched_.try_emplace(key.task.value, known == nullptr ? Task{} : *known).first->second;
  if (row.attempt >= key.attempt) return &row;
  if (row.attempt > 0) {
    const Result<void> put = statements_.attempt_put.run(
        book_.numbers.of(key.task), row.attempt, std::to_underlying(row.stage),
        std::to_underlying(row.failure), row.exit_code, row.started, row.ended,
        row.memory_requested, row.memory_peak, row.cpu_time, row.message, row.gpus,
        row.gpu_memory_requested, row.gpu_memory_peak, row.memory_at_least ? 1 : 0,
        row.gpu_capped ? 1 : 0, row.gpu_memory_max, row.capped_by, row.code, row.machine);
    if (!put) return std::unexpected(put.error());
  }
  row = {.attempt = key.attempt,
         .status = row.status,
         .stage = row.stage,
         .started = at,
         .times = row.times};
  return &row;
}

void TurnWriter::count(model::TaskIndex task, Counted from, Counted to) {
  if (from == to) return;
  Counts& counts = counts_[book_.shape_of_task.at(task.value)];
  counts.at(std::to_underlying(from)) -= 1;
  counts.at(std::to_underlying(to)) += 1;
}

Result<void> TurnWriter::write_tasks() {
  for (const auto& [task, row] : touched_) {
    const std::uint32_t number = book_.numbers.of(model::TaskIndex{task});
    Result<void> done;
    if (row.verdict != model::Verdict::None) {
      done = write_ended(task, row);
      if (done && live_.contains(task)) done = statements_.live_delete.run(number);
    } else {
      done = statements_.live_put.run(
          number, std::to_underlying(row.status), std::to_underlying(row.stage), row.attempt,
          std::to_underlying(row.failure), row.exit_code, row.pid, row.started, row.ended,
          row.memory_requested, row.memory_now, row.memory_peak, row.cpu_time, row.message,
          row.warning, row.result, row.times.load_numbers, row.times.train_numbers, row.times.load,
          row.times.train, row.gpus, row.gpu_memory_requested, row.gpu_memory_now,
          row.gpu_memory_peak, row.memory_at_least ? 1 : 0, row.gpu_capped ? 1 : 0,
          row.gpu_memory_max, row.capped_by, row.code, row.machine, row.retry_at);
    }
    if (!done) return done;
  }
  return {};
}

Result<void> TurnWriter::write_ended(std::uint32_t task, const Task& row) {
  const std::optional<Instant> started =
      row.attempt == 0 ? std::nullopt : std::optional(row.started);
  return statements_.ended_put.run(
      book_.numbers.of(model::TaskIndex{task}), std::to_underlying(row.verdict),
      std::to_underlying(row.status), std::to_underlying(row.stage), row.attempt,
      std::to_underlying(row.failure), row.exit_code, started, row.ended, row.memory_requested,
      row.memory_peak, row.cpu_time, row.message, row.warning, row.result, row.times.load_numbers,
      row.times.train_numbers, row.times.load, row.times.train, row.gpus, row.gpu_memory_requested,
      row.gpu_memory_peak, row.memory_at_least ? 1 : 0, row.gpu_capped ? 1 : 0, row.gpu_memory_max,
      row.capped_by, row.code, row.machine, row.with_group ? 1 : 0);
}

Result<void> TurnWriter::write_counts() {
  for (const auto& [shape, by] : counts_) {
    const Result<void> done =
        statements_.counts.run(shape, by[0], by[1], by[2], by[3], by[4], by[5], by[6]);
    if (!done) return done;
  }
  return {};
}

void TurnWriter::keep() {
  for (auto& [task, row] : touched_) {
    if (row.verdict != model::Verdict::None) {
      live_.erase(task);
      progress_.forget(book_.numbers.of(model::TaskIndex{task}));
    } else {
      live_.insert_or_assign(task, std::move(row));
    }
  }
  touched_.clear();
  counts_.clear();
  ended_now_.clear();
  reopened_now_.clear();
  gpus_before_.reset();
  samples_.keep();
  codes_.keep();
}

void TurnWriter::drop() {
  for (const std::uint32_t task : ended_now_) book_.ended[task] = false;
  for (const std::uint32_t task : reopened_now_) book_.ended[task] = true;
  touched_.clear();
  counts_.clear();
  ended_now_.clear();
  reopened_now_.clear();
  if (gpus_before_) book_.numbers.gpus = *std::move(gpus_before_);
  gpus_before_.reset();
  samples_.drop();
  codes_.drop();
  progress_.drop();
}

Result<void> TurnWriter::apply(Instant at, const model::MachineJoined& joined) {
  if (!gpus_before_) gpus_before_ = book_.numbers.gpus;
  auto& gpus = book_.numbers.gpus;
  gpus.resize(std::max<std::size_t>(gpus.size(), std::size_t{joined.machine.value} + 1));
  gpus[joined.machine.value] = labels_of(joined.capacity.gpus);
  samples_.join(joined);
  const Result<void> put = machines_.join(at, joined);
  // The machine may come back with fewer available GPUs.
  return put ? waiting_.leave(joined.machine) : put;
}

Result<void> TurnWriter::apply(Instant at, const model::MachineGone& gone) {
  samples_.leave(gone.machine);
  const Result<void> left = machines_.leave(at, gone);
  return left ? waiting_.leave(gone.machine) : left;
}

Result<void> TurnWriter::apply(Instant at, const model::Sampled& sample) {
  for (const model::TaskSample& seen : sample.tasks) {
    const Task* known = find(seen.key.task);
    if (known == nullptr || known->memory_now == seen.memory) continue;
    Task* row = touch_running(seen.key);
    if (row == nullptr || row->ended) continue;
    row->memory_now = seen.memory;
    row->memory_peak = std::max(row->memory_peak, seen.memory);
  }
  return samples_.add(at, sample);
}

/// An attempt on several GPUs has its memory on the GPU where it has most.
Result<void> TurnWriter::apply(const model::GpusSampled& sample) {
  for (const model::GpuFound& it : sample.found) {
    const Result<void> put = machines_.find(sample.machine, it);
    if (!put) return put;
  }
  for (const auto& [task, row] : live_) {
    // Attempts of other machines are updated with the samples of these.
    if (row.gpu_memory_now == Bytes{} || row.machine != sample.machine.value) continue;
    const bool seen = std::ranges::any_of(
        sample.uses, [task](const model::GpuUse& use) { return use.key.task.value == task; });
    if (seen) continue;
    Task* const gone = touch_running({.task = {task}, .attempt = row.attempt});
    if (gone != nullptr) gone->gpu_memory_now = {};
  }
  for (std::size_t i = 0; i < sample.uses.size();) {
    const model::AttemptKey key = sample.uses[i].key;
    Bytes most;
    for (; i < sample.uses.size() && sample.uses[i].key == key; ++i) {
      most = std::max(most, sample.uses[i].memory);
    }
    const Task* known = find(key.task);
    if (known == nullptr || known->gpu_memory_now == most) continue;
    Task* row = touch_running(key);
    if (row == nullptr || row->ended) continue;
    row->gpu_memory_now = most;
    row->gpu_memory_peak = std::max(row->gpu_memory_peak, most);
  }
  return {};
}

}  // namespace trainyard::journal
