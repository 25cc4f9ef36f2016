#include "journal/resume.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <expected>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "journal/batch_writer.h"
#include "journal/changes.h"
#include "journal/event_text.h"
#include "journal/machine_table.h"
#include "journal/past.h"
#include "journal/plan_rows.h"
#include "journal/reader_rows.h"
#include "journal/rows.h"
#include "journal/schema.h"
#include "journal/stale_tasks.h"
#include "model/command.h"
#include "model/status.h"

namespace trainyard::journal {
namespace {

/// Closes what the dead execution left open: the attempts that ran are lost, in whichever batch.
constexpr const char* kCloseExecution = R"sql(
UPDATE tasks SET attempt_before = l.attempt FROM live l
  WHERE l.task = tasks.number AND l.attempt > tasks.attempt_before;
INSERT OR REPLACE INTO attempts SELECT task, attempt, stage,
    CASE WHEN ended_ms IS NULL THEN {lost} ELSE failure END, exit_code, started_ms,
    coalesce(ended_ms, {at}), memory_requested, memory_peak, cpu_ms,
    CASE WHEN ended_ms IS NULL THEN 'trainyard died while the task ran' ELSE message END,
    gpus, gpu_memory_requested, gpu_memory_peak, memory_at_least, gpu_capped,
    gpu_memory_max, capped_by, code, machine
  FROM live WHERE attempt > 0;
DELETE FROM live;
UPDATE executions SET ended_ms = {at}, how = 'died' WHERE ended_ms IS NULL;
UPDATE shapes SET waiting = waiting + running + retrying, running = 0, retrying = 0
  WHERE running + retrying > 0;
UPDATE groups SET phase = {blocked} WHERE phase = {runs};
DELETE FROM headroom;
DELETE FROM headroom_gpus;
)sql";

/// Moves the last attempts of tasks that have ended to the earlier attempts.
constexpr const char* kMoveToAttempts = R"sql(
INSERT OR REPLACE INTO attempts SELECT task, attempt, stage, failure, exit_code, started_ms,
    ended_ms, memory_requested, memory_peak, cpu_ms, message, gpus, gpu_memory_requested,
    gpu_memory_peak, memory_at_least, gpu_capped,
    gpu_memory_max, capped_by, code, machine
  FROM ended WHERE attempt > 0 AND {tasks};
DELETE FROM ended WHERE {tasks};
)sql";

/// `tasks` is a condition in SQL.
Result<void> move_to_attempts(Database& database, const std::string& tasks) {
  return database.run(fmt::format(kMoveToAttempts, fmt::arg("tasks", tasks)));
}

/// All attempts that ran are lost, and had ended at `at`. `batches` are the numbers of those that
/// continue, for SQL. Of their tasks only finished ones keep their verdict, or all if
/// `unfinished` is Stay.
Result<void> close_dead_execution(Database& database, Instant at, const std::string& batches,
                                  Unfinished unfinished) {
  Result<void> done = database.run(
      fmt::format(kCloseExecution, fmt::arg("at", at.since_start.count()),
                  fmt::arg("lost", std::to_underlying(model::Failure::Lost)),
                  fmt::arg("runs", std::to_underlying(model::GroupPhase::Running)),
                  fmt::arg("blocked", std::to_underlying(model::GroupPhase::Blocked))));
  if (done) {
    done = database.run(fmt::format(
        "UPDATE tasks SET attempt_before = e.attempt FROM ended e WHERE e.task = tasks.number AND "
        "e.attempt > tasks.attempt_before AND tasks.batch IN ({})",
        batches));
  }
  if (done && unfinished != Unfinished::Stay) {
    done = move_to_attempts(
        database,
        fmt::format("verdict <> {} AND task IN (SELECT number FROM tasks WHERE batch IN ({}))",
                    std::to_underlying(model::Verdict::Finished), batches));
  }
  if (!done) return done;
  return database.run(fmt::format(
      "DELETE FROM shapes WHERE group_number IN (SELECT number FROM groups WHERE batch IN ({}))",
      batches));
}

/// The task in this row is to be retried by a request. It counts as stopped until the request
/// comes.
Result<void> stop_until_retried(Database& database, std::uint32_t task) {
  return database.run(fmt::format("UPDATE ended SET verdict = {}, result = '' WHERE task = {}",
                                  std::to_underlying(model::Verdict::Stopped), task));
}

class TakingOver {
 public:
  TakingOver(Database& database, const std::vector<Batch>& batches, const JournalOptions& options)
      : database_(database), batches_(batches), options_(options) {
    for (const Batch& batch : batches) starts_.push_back(model::append(plan_, *batch.plan));
  }

  Result<TakenOver> run(const Execution& execution) {
    Result<void> done = remove_incomplete_batches(database_);
    if (done) done = choose_batches();
    if (done) done = look_back();
    if (done) done = close_executions();
    if (done) done = going_on_->let_time_pass(execution.started_unix_ms, taken_.at);
    if (done) done = match_groups();
    if (done) done = match_tasks();
    if (done) compare_tasks();
    if (done) done = write_tasks();
    if (done) done = write_shapes();
    if (done) done = put_execution(database_, taken_.book.execution, taken_.at, execution);
    numbers().gpus = {labels_of(execution.gpus)};
    if (done) done = note();
    if (!done) return std::unexpected(std::move(done.error()));
    taken_.changes = changes_.lines();
    taken_.goes_on = going_on_->go_on();
    return std::move(taken_);
  }

 private:
  RowNumbers& numbers() { return taken_.book.numbers; }
  model::GroupIndex group_of(std::uint32_t task) const {
    return plan_.shapes.at(plan_.tasks[task].shape.value).group;
  }
  /// The batch of a task.
  std::size_t batch_of(std::uint32_t task) const {
    const auto after = std::ranges::upper_bound(starts_, task, {}, &model::PlanStart::task);
    return static_cast<std::size_t>(after - starts_.begin()) - 1;
  }
  std::string id_of(std::uint32_t task) const {
    const std::size_t batch = batch_of(task);
    return batches_[batch].names.task_id({task - starts_[batch].task});
  }
  std::string name_of(std::uint32_t task) const {
    return fmt::format("{}/{}", plan_.groups[group_of(task).value].name, id_of(task));
  }

  Result<void> note() {
    return database_.run(
        fmt::format("INSERT INTO events (execution, at_ms, kind, data) VALUES ({}, {}, 'resumed', "
                    "'{{\"finished\":{}}}')",
                    taken_.book.execution, taken_.at.since_start.count(), taken_.finished));
  }
  Result<void> choose_batches();
  Result<void> look_back();
  Result<void> close_executions();
  Result<void> match_groups();
  Result<void> match_groups_of(std::size_t batch, std::vector<OldGroup>& old);
  Result<void> match_tasks();
  void compare_tasks();
  [[nodiscard]] bool is_changed(std::uint32_t task) const;
  [[nodiscard]] bool may_run_again(const OldTask& old) const;
  std::uint32_t index_of(const OldTask& task) const;
  Result<void> read_old_tasks(std::vector<Lone>& lone_old);
  void match_lone(std::vector<Lone> lone_old);
  Result<void> write_tasks();
  Result<void> write_tasks_of(std::size_t batch);
  Result<void> write_task(TaskRows& rows, std::uint32_t task, model::PlannedTask& planned);
  /// A task of a plan that has a row from before, and what the plan takes over of it.
  struct Known {
    std::uint32_t row = 0;
    bool changed = false;
  };
  Result<void> go_on_with(const Known& known, model::TaskIndex task, model::Plan& plan);
  Result<void> write_shapes();
  Result<void> remove_old_tasks();

  Database& database_;
  const std::vector<Batch>& batches_;
  const JournalOptions& options_;
  std::string taken_over_;                ///< The numbers of the batches that are, for SQL.
  model::Plan plan_;                      ///< All batches.
  std::vector<model::PlanStart> starts_;  ///< The start of each batch in it.
  TakenOver taken_;
  Changes changes_;
  std::uint32_t next_group_ = 0;
  std::map<std::uint32_t, std::string> group_names_;
  std::vector<bool> batch_is_new_;
  std::vector<bool> group_is_new_;  ///< By index in the plan.
  std::vector<OldTask> old_;
  std::vector<std::uint32_t> old_of_task_;  ///< By index in the plan; kNone for a new one.
  std::unique_ptr<Past> past_;              ///< Once it has been looked back.
  std::set<std::uint32_t> not_needed_;      ///< Tasks that were not needed, by number.
  std::vector<Past::Taken> taken_before_;   ///< For the batch whose tasks are written.
  /// The same, by shape of that batch; and of all, by the numbers of their rows.
  std::map<model::ShapeIndex, model::SharingMeasured> sharing_before_;
  std::map<std::uint32_t, model::SharingMeasured> measured_;
  std::unique_ptr<GoingOn> going_on_;  ///< Once the dead execution is closed.
  bool groups_are_as_before_ = false;
  std::vector<bool> changed_;  ///< By index in the plan, as the next two are.
  std::vector<bool> begins_anew_;
  /// Finished before what they need has begun anew.
  std::vector<bool> stale_;
  StaleGroups stale_groups_;
};

/// New ones are written down; those that are not given are taken over as well where nothing of
/// them is to stay.
Result<void> TakingOver::choose_batches() {
  for (const Batch& batch : batches_) {
    taken_over_ += fmt::format("{}{}", taken_over_.empty() ? "" : ", ", batch.number);
    const Result<std::int64_t> known = database_.number(
        fmt::format("SELECT count(*) FROM batches WHERE number = {}", batch.number));
    if (!known) return std::unexpected(known.error());
    batch_is_new_.push_back(*known == 0);
    if (*known > 0) continue;
    const Result<void> put = put_batch(database_, batch, Instant{}, /*complete=*/true);
    if (!put) return put;
  }
  if (options_.others == OtherBatches::AreGone) taken_over_ = "SELECT number FROM batches";
  return {};
}

Result<void> TakingOver::look_back() {
  Result<Past> past = Past::read(database_, taken_over_);
  if (!past) return std::unexpected(std::move(past.error()));
  past_ = std::make_unique<Past>(std::move(*past));
  return each(database_,
              fmt::format("SELECT task FROM ended WHERE verdict = {}",
                          std::to_underlying(model::Verdict::NotNeeded)),
              [this](const Statement& row) {
                not_needed_.insert(static_cast<std::uint32_t>(row.integer(0)));
              });
}

Result<void> TakingOver::close_executions() {
  const Result<std::int64_t> at = database_.number(kLastInstant);
  if (!at) return std::unexpected(at.error());
  taken_.at = Instant{Duration(*at)};
  const Result<std::int64_t> last = database_.number("SELECT max(number) FROM executions");
  if (!last) return std::unexpected(last.error());
  taken_.book.execution = *last + 1;
  Result<GoingOn> going_on = GoingOn::set_aside(database_, options_.found);
  if (!going_on) return std::unexpected(std::move(going_on.error()));
  going_on_ = std::make_unique<GoingOn>(std::move(*going_on));
  return close_dead_execution(database_, taken_.at, taken_over_, options_.unfinished);
}

Result<void> TakingOver::match_groups() {
  Result<std::vector<OldGroup>> read = read_old_groups(database_, taken_over_);
  if (!read) return std::unexpected(std::move(read.error()));
  std::vector<OldGroup>& old = *read;
  const Result<std::uint32_t> next = next_number(database_, "groups");
  if (!next) return std::unexpected(next.error());
  next_group_ = *next;
  for (std::size_t batch = 0; batch < batches_.size(); ++batch) {
    if (Result<void> matched = match_groups_of(batch, old); !matched) return matched;
  }
  for (const OldGroup& group : old) {
    if (group.taken || !group.present) continue;
    changes_.add(
        fmt::format("group '{}' is no longer in the job file; its results are not shown, and come "
                    "back with the group",
                    group.name));
    const Result<void> gone = database_.run(
        fmt::format("UPDATE groups SET position = NULL WHERE number = {}", group.number));
    if (!gone) return gone;
  }
  return {};
}

Result<void> TakingOver::match_groups_of(std::size_t batch, std::vector<OldGroup>& old) {
  const model::Plan& plan = *batches_[batch].plan;
  for (std::uint32_t i = 0; i < plan.groups.size(); ++i) {
    const model::PlannedGroup& group = plan.groups[i];
    const auto known = std::ranges::find_if(old, [&](const OldGroup& it) {
      return !it.taken && it.batch == batches_[batch].number && it.name == group.name;
    });
    const bool is_new = known == old.end() || !known->present;
    if (is_new) {
      // A batch that is all new has no edits.
      if (!batch_is_new_[batch]) changes_.add(fmt::format("group '{}' is new", group.name));
    } else {
      changes_.compare(group.name, known->settings, settings_of(plan, group));
    }
    if (known != old.end()) known->taken = true;
    numbers().groups.push_back(known == old.end() ? next_group_++ : known->number);
    group_is_new_.push_back(is_new);
    group_names_[numbers().groups.back()] = group.name;
    const Result<void> put =
        put_group(database_, numbers().groups.back(), batches_[batch], model::GroupIndex{i});
    if (!put) return put;
  }
  return {};
}

Result<void> TakingOver::read_old_tasks(std::vector<Lone>& lone_old) {
  return each(
      database_,
      fmt::format(
          "SELECT t.number, t.attempt_before, t.fingerprint, t.position, t.group_number, t.shape, "
          "coalesce(e.verdict, 0), t.id, t.edited, t.batch, e.started_ms, e.ended_ms FROM tasks t "
          "LEFT JOIN ended e ON e.task = t.number WHERE t.batch IN ({}) ORDER BY t.batch, "
          "t.position",
          taken_over_),
      [&](const Statement& row) {
        const auto place = static_cast<std::uint32_t>(old_.size());
        const OldTask& task = old_.emplace_back(
            OldTask{.number = static_cast<std::uint32_t>(row.integer(0)),
                    .attempt_before = static_cast<std::uint32_t>(row.integer(1)),
                    .fingerprint = row.integer(2),
                    .batch = static_cast<std::uint32_t>(row.integer(9)),
                    .position = row.null(3) ? kNone : static_cast<std::uint32_t>(row.integer(3)),
                    .group = static_cast<std::uint32_t>(row.integer(4)),
                    .shape = row.null(5) ? kNone : static_cast<std::uint32_t>(row.integer(5)),
                    .verdict = static_cast<model::Verdict>(row.small(6)),
                    .edited = row.small(8) != 0,
                    .last_run = last_run(static_cast<model::Verdict>(row.small(6)),
                                         optional_instant(row, 10), optional_instant(row, 11))});
        // Most files come back as they were: then every task is where it was, and nothing is sorted.
        const std::uint32_t at = index_of(task);
        const bool same = at != kNone && numbers().groups[group_of(at).value] == task.group &&
                          id_of(at) == row.text(7);
        if (same) {
          old_of_task_[at] = place;
        } else {
          lone_old.push_back({.group = task.group, .id = std::string(row.text(7)), .place = place});
        }
      });
}

/// The place where a task was, in all batches of now; kNone where there is none any more.
std::uint32_t TakingOver::index_of(const OldTask& task) const {
  const auto batch = std::ranges::find(batches_, task.batch, &Batch::number);
  if (batch == batches_.end() || task.position >= batch->plan->tasks.size()) return kNone;
  return starts_[static_cast<std::size_t>(batch - batches_.begin())].task + task.position;
}

void TakingOver::match_lone(std::vector<Lone> lone_old) {
  std::vector<Lone> lone_new;
  for (std::uint32_t i = 0; i < old_of_task_.size(); ++i) {
    if (old_of_task_[i] != kNone) continue;
    lone_new.push_back({.group = numbers().groups[group_of(i).value], .id = id_of(i), .place = i});
  }
  for (const LonePair& pair : pairs_of(std::move(lone_old), std::move(lone_new))) {
    old_of_task_[pair.now] = pair.old;
  }
}

Result<void> TakingOver::match_tasks() {
  old_of_task_.assign(plan_.tasks.size(), kNone);
  changed_.assign(plan_.tasks.size(), false);
  std::vector<Lone> lone_old;
  Result<void> read = read_old_tasks(lone_old);
  if (read) match_lone(std::move(lone_old));
  return read;
}

bool TakingOver::is_changed(std::uint32_t task) const {
  const OldTask& old = old_[old_of_task_[task]];
  const std::size_t batch = batch_of(task);
  const std::uint64_t now = batches_[batch].names.fingerprint({task - starts_[batch].task});
  return std::bit_cast<std::int64_t>(now) != old.fingerprint;
}

bool TakingOver::may_run_again(const OldTask& old) const {
  return options_.edited == Edited::RunAgain &&
         (!options_.again || options_.again->contains(old.number));
}

/// Finds the tasks that were changed, and the finished ones that are behind such that begin anew. A
/// finished task begins anew if it was changed, is behind such a task, or is named.
void TakingOver::compare_tasks() {
  begins_anew_.assign(plan_.tasks.size(), false);
  // Whether a task that was not needed runs is decided again when the tasks before it have ended.
  // It may never run, so the tasks that need it are not run again because of it.
  std::vector<bool> runs_anew(plan_.tasks.size());
  std::vector<LastRun> last_runs(plan_.tasks.size());
  const bool all = options_.unfinished == Unfinished::RunAgain;
  for (std::uint32_t task = 0; task < plan_.tasks.size(); ++task) {
    if (old_of_task_[task] == kNone) {
      runs_anew[task] = begins_anew_[task] = all;
      continue;
    }
    const OldTask& old = old_[old_of_task_[task]];
    last_runs[task] = old.last_run;
    changed_[task] = is_changed(task);
    if (changed_[task]) taken_.edited.insert(old.number);
    begins_anew_[task] = old.finished() ? changed_[task] && may_run_again(old)
                                        : all || options_.retried.contains(old.number);
    runs_anew[task] = begins_anew_[task] && (changed_[task] || !not_needed_.contains(old.number));
  }
  // The needs of batches that are not given are unknown.
  if (options_.others == OtherBatches::Stay) {
    stale_.assign(plan_.tasks.size(), false);
    return;
  }
  stale_ = find_stale(plan_, runs_anew, last_runs);
  for (std::uint32_t task = 0; task < plan_.tasks.size(); ++task) {
    if (old_of_task_[task] == kNone || (!stale_[task] && !options_.again)) continue;
    const OldTask& old = old_[old_of_task_[task]];
    if (old.finished() && may_run_again(old)) runs_anew[task] = begins_anew_[task] = true;
  }
  // Tasks that are only named have others behind them, too.
  const std::vector<bool> behind = find_stale(plan_, runs_anew, last_runs);
  for (std::size_t i = 0; i < stale_.size(); ++i) stale_[i] = stale_[i] || behind[i];
}

Result<void> TakingOver::write_tasks() {
  Result<std::uint32_t> next = next_number(database_, "tasks");
  if (!next) return std::unexpected(next.error());
  const Result<std::uint32_t> shape = next_number(database_, "shapes");
  if (!shape) return std::unexpected(shape.error());
  numbers().first_shape = *shape;
  numbers().tasks.resize(plan_.tasks.size());
  for (std::uint32_t i = 0; i < plan_.tasks.size(); ++i) {
    numbers().tasks[i] = old_of_task_[i] == kNone ? (*next)++ : old_[old_of_task_[i]].number;
  }
  groups_are_as_before_ = changes_.lines().empty();
  Result<void> written = remove_old_tasks();
  for (std::size_t batch = 0; written && batch < batches_.size(); ++batch) {
    written = write_tasks_of(batch);
  }
  // A retry runs no finished task again that was not changed.
  const std::string_view cure = options_.unfinished == Unfinished::Stay
                                    ? "--resume --rerun-changed runs such again"
                                    : "--rerun-changed runs such again";
  for (std::string& line : stale_groups_.lines(plan_, cure)) changes_.add(std::move(line));
  return written;
}

Result<void> TakingOver::write_tasks_of(std::size_t batch) {
  Result<TaskRows> rows = TaskRows::open(database_, batches_[batch], starts_[batch], numbers());
  if (!rows) return std::unexpected(std::move(rows.error()));
  auto plan = std::make_shared<model::Plan>(*batches_[batch].plan);
  for (std::uint32_t i = 0; i < plan->tasks.size(); ++i) {
    model::PlannedTask& planned = plan->tasks[i];
    const Result<void> written = write_task(*rows, starts_[batch].task + i, planned);
    if (!written) return written;
    taken_.book.shape_of_task.push_back(
        numbers().of(model::ShapeIndex{starts_[batch].shape + planned.shape.value}));
    taken_.book.ended.push_back(!planned.is_open());
    taken_.finished += planned.finished_before() ? 1 : 0;
    const std::uint32_t task = starts_[batch].task + i;
    if (old_of_task_[task] == kNone) continue;
    const Known known{.row = old_[old_of_task_[task]].number, .changed = changed_[task]};
    if (Result<void> done = go_on_with(known, {i}, *plan); !done) return done;
  }
  if (Result<void> done = put_not_selected(database_, *plan, starts_[batch], numbers()); !done) {
    return done;
  }
  std::ranges::sort(taken_before_, [](const Past::Taken& a, const Past::Taken& b) {
    return std::tie(a.ended, a.what.task) < std::tie(b.ended, b.what.task);
  });
  for (const Past::Taken& taken : std::exchange(taken_before_, {})) {
    plan->taken.push_back(taken.what);
  }
  // The run's own measurements come before those of earlier runs.
  for (const auto& [shape, measured] : std::exchange(sharing_before_, {})) {
    std::erase_if(plan->sharing, [&shape](const auto& it) { return it.shape == shape; });
    plan->sharing.push_back(measured);
    measured_[numbers().of(model::ShapeIndex{starts_[batch].shape + shape.value})] = measured;
  }
  taken_.plans.push_back(std::move(plan));
  return {};
}

/// The state of earlier executions counts as long as the task is the same.
Result<void> TakingOver::go_on_with(const Known& known, model::TaskIndex task, model::Plan& plan) {
  if (const auto said = past_->said_of(known.row, task)) plan.said.push_back(*said);
  if (known.changed) return past_->forget(known.row);
  const model::ShapeIndex shape = plan.tasks[task.value].shape;
  if (const auto sharing = past_->sharing_of(known.row, shape)) sharing_before_[shape] = *sharing;
  if (plan.tasks[task.value].finished_before()) {
    if (const auto taken = past_->taken_by(known.row, task)) taken_before_.push_back(*taken);
    return {};
  }
  if (auto failed = past_->failed_with(known.row, task); failed && !options_.fresh) {
    plan.failed.push_back(*std::move(failed));
  }
  // A task that stays as it ended begins anew, if ever, with the request in the job file.
  if (!plan.tasks[task.value].is_open()) return {};
  const Result<std::optional<model::Reached>> reached =
      past_->reached_by(known.row, task, plan.shape_of(task).terms);
  if (!reached) return std::unexpected(reached.error());
  if (const std::optional<model::Reached>& it = *reached; it) plan.reached.push_back(*it);
  return {};
}

Result<void> TakingOver::write_shapes() {
  Result<void> done;
  for (std::size_t batch = 0; done && batch < batches_.size(); ++batch) {
    done = put_shapes(database_, *taken_.plans[batch], starts_[batch], numbers());
    if (done) done = put_task_needs(database_, batches_[batch], starts_[batch], numbers());
  }
  taken_.book.shapes = static_cast<std::uint32_t>(plan_.shapes.size());
  if (done) done = put_sharing(database_, measured_);
  return done;
}

Result<void> TakingOver::write_task(TaskRows& rows, std::uint32_t task,
                                    model::PlannedTask& planned) {
  const std::size_t batch = batch_of(task);
  const model::TaskIndex within{task - starts_[batch].task};
  const bool tell = !group_is_new_[group_of(task).value];
  if (old_of_task_[task] == kNone) {
    const bool stays_out = options_.unfinished == Unfinished::Stay;
    // It is not selected: it waits for an execution that takes up all tasks.
    if (stays_out) planned.before = model::Verdict::NotSelected;
    if (tell) {
      changes_.add(fmt::format("task '{}' is new{}", name_of(task),
                               stays_out ? "; a resumed run runs it" : ""));
    }
    return rows.insert(within);
  }
  const OldTask& old = old_[old_of_task_[task]];
  planned.first_attempt = old.attempt_before + 1;
  planned.before = old.verdict;
  const bool changed = changed_[task];
  if (groups_are_as_before_ && !changed) {
    if (Result<void> up = going_on_->go_on_with(old.number, {task}, planned); !up) return up;
  }
  if (old.position == kNone && tell) {
    changes_.add(fmt::format("task '{}' is in the job file again", name_of(task)));
  }
  const bool again = begins_anew_[task] && old.finished();
  if (old.finished() && stale_[task]) stale_groups_.add(group_of(task), {.runs_again = again});
  if (again) {
    ++taken_.not_kept.run_again;
    if (changed) {
      changes_.add(fmt::format("task '{}' was changed after it had finished; it is run again",
                               name_of(task)));
    }
    planned.before = options_.by_request ? model::Verdict::Stopped : model::Verdict::None;
    Result<void> put_aside =
        options_.by_request ? stop_until_retried(database_, old.number)
                            : move_to_attempts(database_, fmt::format("task = {}", old.number));
    if (!put_aside) return put_aside;
  } else if (changed && old.finished()) {
    changes_.count_kept();
  } else if (changed) {
    changes_.add(fmt::format("task '{}' was changed", name_of(task)));
  }
  const bool kept = changed && planned.finished_before();
  const bool as_it_was =
      !changed && old.edited == kept && old.position == within.value &&
      old.shape == numbers().of(model::ShapeIndex{starts_[batch].shape + planned.shape.value});
  if (as_it_was) return {};
  return rows.update(within, {.fingerprint_stays = planned.finished_before(), .edited = kept});
}

Result<void> TakingOver::remove_old_tasks() {
  std::vector<bool> taken(old_.size());
  for (const std::uint32_t place : old_of_task_) {
    if (place != kNone) taken[place] = true;
  }
  Result<Statement> remove =
      database_.prepare("UPDATE tasks SET position = NULL, shape = NULL WHERE number = ?1");
  if (!remove) return std::unexpected(std::move(remove.error()));
  for (std::size_t i = 0; i < old_.size(); ++i) {
    if (!taken[i] && old_[i].finished()) ++taken_.not_kept.gone;
    if (taken[i] || old_[i].position == kNone) continue;
    Result<void> done = remove->run(old_[i].number);
    if (!done) return done;
    const auto group = group_names_.find(old_[i].group);
    if (group == group_names_.end()) continue;
    const Result<std::string> id =
        database_.text(fmt::format("SELECT id FROM tasks WHERE number = {}", old_[i].number));
    if (!id) return std::unexpected(id.error());
    changes_.add(fmt::format(
        "task '{}/{}' is no longer in the job file{}", group->second, *id,
        old_[i].finished() ? "; its result is not shown, and comes back with the task" : ""));
  }
  return {};
}

}  // namespace

Result<TakenOver> take_over(Database& database, const std::vector<Batch>& batches,
                            const Execution& execution, const JournalOptions& options) {
  return TakingOver(database, batches, options).run(execution);
}

}  // namespace trainyard::journal
