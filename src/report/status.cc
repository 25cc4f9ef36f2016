#include "report/status.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <string_view>
#include <utility>

#include "model/status.h"
#include "model/waiting.h"
#include "report/digest.h"
#include "report/json_rows.h"
#include "report/other_code.h"

namespace trainyard::report {
namespace {

/// The maximum number of rows in memory at once, however many a group has.
constexpr std::size_t kChunk = 1000;

RunState state_of(const journal::ExecutionRow& execution, const StatusRequest& request) {
  if (execution.ended) {
    return request.yard_lives && execution.is_of_program() ? RunState::Idle : RunState::Ended;
  }
  if (!request.yard_lives) return RunState::Died;
  if (request.yard_suspended) return RunState::Suspended;
  return execution.is_interrupted() ? RunState::Stopping : RunState::Running;
}

Instant now_of(const StatusView& view, Instant last, const StatusRequest& request) {
  if (view.execution.ended) return *view.execution.ended;
  if (view.state == RunState::Died) return last;
  // The clock on the wall may have been set back since.
  const Duration by_clock{request.now_unix_ms - view.execution.started_unix_ms};
  return std::max(last, view.execution.started + by_clock);
}

Result<std::vector<journal::TaskRow>> read_tasks(journal::JournalReader& reader,
                                                 const journal::JournalReader::TaskFilter& filter) {
  std::vector<journal::TaskRow> rows;
  Result<void> read = reader.tasks(filter, [&rows](journal::TaskRow row) {
    rows.push_back(std::move(row));
    return true;
  });
  if (!read) return std::unexpected(std::move(read.error()));
  return rows;
}

/// Takes the tasks whose delay of a retry runs out of the reasons of others of their kind.
void leave_out_delayed(StatusView& view) {
  for (const journal::TaskRow& row : view.running) {
    if (!delay_runs(row, view.now)) continue;
    const auto reason =
        std::ranges::find_if(view.waiting, [&row](const journal::WaitingReason& it) {
          return it.shape == row.shape && it.cause != model::Cause::Held;
        });
    if (reason != view.waiting.end()) --reason->tasks;
  }
  std::erase_if(view.waiting, [](const journal::WaitingReason& it) { return it.tasks <= 0; });
}

/// Gives a task that waits the reason for its message, as the table shows it.
void add_reason(journal::TaskRow& row, const StatusView& view) {
  const bool waits =
      row.standing.verdict == model::Verdict::None && row.standing.status == Status::Init;
  if (view.state != RunState::Running || !waits || !row.message.empty()) return;
  const auto reason = std::ranges::find_if(view.waiting, [&row](const journal::WaitingReason& it) {
    return it.shape == row.shape && (it.cause == model::Cause::Held) == row.standing.on_hold;
  });
  if (reason != view.waiting.end()) row.message = reason->reason;
}

/// The selected tasks below the heading of their group; nothing for a group without any. The
/// heading is about the whole group, all that follows about the selected tasks alone.
Result<void> write_some(journal::JournalReader& reader, const StatusView& view,
                        const std::set<model::TaskIndex>& only, const TableOptions& options,
                        Sink& sink) {
  for (const journal::GroupRow& group : view.groups) {
    GroupDigest whole(group);
    GroupDigest selected(group);
    std::vector<journal::TaskRow> rows;
    Result<void> read = reader.tasks({.group = group.index}, [&](journal::TaskRow row) {
      if (options.over) mark_lost(row);
      whole.look_at(row);
      if (!only.contains(row.index)) return true;
      selected.look_at(row);
      add_reason(row, view);
      rows.push_back(std::move(row));
      return true;
    });
    if (!read) return read;
    if (rows.empty()) continue;
    TaskTable table(selected, options);
    sink("\n" + group_heading(whole, options.run_directory) + "\n" + table.lines(rows));
    const int count = static_cast<int>(rows.size());
    const std::string_view best_title = count == group.tasks ? "best"
                                        : count > 1          ? "best of these"
                                                             : "";
    const std::string footer = group_footer(selected, count, table, best_title);
    if (!footer.empty()) sink("\n" + footer);
  }
  return {};
}

Result<void> write_table(journal::JournalReader& reader, const journal::GroupRow& group,
                         const TableOptions& options, Sink& sink) {
  GroupDigest digest(group);
  ShownRows shown(group);
  Result<void> read = reader.tasks({.group = group.index}, [&](journal::TaskRow row) {
    if (options.over) mark_lost(row);
    digest.look_at(row);
    if (!options.all) shown.look_at(row);
    return true;
  });
  if (!read) return read;
  if (!options.all) {
    sink(group_table(digest, shown.take(), options));
    return {};
  }
  sink(group_heading(digest, options.run_directory) + "\n");
  TaskTable table(digest, options);
  std::vector<journal::TaskRow> chunk;
  read = reader.tasks({.group = group.index}, [&](journal::TaskRow row) {
    if (options.over) mark_lost(row);
    chunk.push_back(std::move(row));
    if (chunk.size() < kChunk) return true;
    sink(table.lines(chunk));
    chunk.clear();
    return true;
  });
  if (read && !chunk.empty()) sink(table.lines(chunk));
  const std::string footer = group_footer(digest, group.tasks, table);
  if (read && !footer.empty()) sink("\n" + footer);
  return read;
}

/// The line that counts the tasks of an ended run which ran other code. `--all` has it below its
/// tables. An active run has none, as it retries no finished task.
Result<void> write_other_code(journal::JournalReader& reader, const StatusView& view, Sink& sink) {
  if (view.state != RunState::Ended) return {};
  const Result<bool> several = reader.has_several_codes();
  if (!several) return std::unexpected(several.error());
  if (!*several) return {};
  OtherCode other_code;
  Result<void> read = reader.tasks({}, [&other_code](const journal::TaskRow& row) {
    other_code.look_at(row);
    return true;
  });
  const std::string line = other_code.text_with_cure(view.run_directory);
  if (read && !line.empty()) sink("\n" + line + "\n");
  return read;
}

}  // namespace

Result<StatusView> read_status(journal::JournalReader& reader, const StatusRequest& request) {
  StatusView view{.run_directory = request.run_directory,
                  .number = request.number,
                  .needs_run_again = request.needs_run_again,
                  .runs_again = request.runs_again,
                  .queue_resumes = request.queue_resumes,
                  .processes_left = request.processes_left};
  std::vector<journal::ExecutionRow> executions;
  std::optional<Error> error;
  const auto take = [&error](auto read, auto& into) {
    if (read) {
      into = std::move(*read);
    } else if (!error) {
      error = std::move(read.error());
    }
  };
  Instant last;
  take(reader.job_name(), view.job);
  take(reader.executions(), executions);
  take(reader.groups(), view.groups);
  take(reader.waiting(), view.waiting);
  take(reader.learned(), view.learned);
  take(reader.sharing(), view.sharing);
  take(reader.last_sample(), view.sample);
  take(reader.machines(), view.machines);
  take(read_tasks(reader, {.running = true}), view.running);
  take(read_tasks(reader, {.failed = true, .at_most = kFailedShown}), view.failed);
  take(read_tasks(reader, {.warned = true, .at_most = kWarnedShown}), view.warned);
  take(reader.count_warned(), view.warned_count);
  take(reader.last_instant(), last);
  if (error) return std::unexpected(std::move(*error));
  if (!executions.empty()) view.execution = std::move(executions.back());

  view.state = state_of(view.execution, request);
  view.tasks_run_for = request.tasks_run_for;
  if (!is_active(view.state)) {
    for (journal::GroupRow& group : view.groups) mark_lost(group);
    for (journal::TaskRow& task : view.running) mark_lost(task);
  }
  view.now = now_of(view, last, request);
  leave_out_delayed(view);
  if (!is_active(view.state)) std::erase_if(view.running, waits_for_retry);
  return view;
}

Result<void> write_status(journal::JournalReader& reader, const StatusRequest& request,
                          const TableOptions& table, Sink& sink) {
  const Result<StatusView> view = read_status(reader, request);
  if (!view) return std::unexpected(view.error());
  TableOptions now = table;
  now.now = view->now;
  now.over = !is_active(view->state);
  now.machines = view->machines.size() > 1;
  now.run_directory = view->run_directory;
  if (request.only) {
    sink(status_header(*view));
    return write_some(reader, *view, *request.only, now, sink);
  }
  sink(status_text(*view, table.width));
  if (!table.all) return write_other_code(reader, *view, sink);
  sink("\n");
  return write_tables(reader, now, sink);
}

Result<void> write_status_json(journal::JournalReader& reader, const StatusRequest& request,
                               bool all, Sink& sink) {
  const Result<StatusView> view = read_status(reader, request);
  if (!view) return std::unexpected(view.error());
  if (!all && !request.only) {
    sink(status_json(*view));
    return {};
  }
  sink(status_json_open(*view) + ",\n\"tasks\":[");
  bool first = true;
  Result<void> read = reader.tasks({}, [&](journal::TaskRow row) {
    if (request.only && !request.only->contains(row.index)) return true;
    if (!is_active(view->state)) mark_lost(row);
    sink((first ? "\n" : ",\n") + json_of(row, view->now));
    first = false;
    return true;
  });
  if (read) sink("]}\n");
  return read;
}

Result<void> write_tables(journal::JournalReader& reader, const TableOptions& options, Sink& sink) {
  Result<std::vector<journal::GroupRow>> groups = reader.groups();
  if (!groups) return std::unexpected(groups.error());
  const Result<std::vector<journal::MachineRow>> machines = reader.machines();
  if (!machines) return std::unexpected(machines.error());
  TableOptions with_machines = options;
  with_machines.machines = machines->size() > 1;
  bool first = true;
  for (journal::GroupRow& group : *groups) {
    if (!first) sink("\n");
    first = false;
    if (options.over) mark_lost(group);
    Result<void> written = write_table(reader, group, with_machines, sink);
    if (!written) return written;
  }
  return {};
}

}  // namespace trainyard::report
