#include "cli/run_view.h"

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "config/job.h"
#include "config/shell_quote.h"
#include "io/clock.h"
#include "io/output.h"
#include "io/terminal.h"
#include "journal/place.h"
#include "journal/reader.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/plan.h"
#include "report/progress.h"
#include "report/sink.h"
#include "report/status.h"
#include "report/status_text.h"
#include "report/write_reports.h"

namespace trainyard::cli {
namespace {

std::vector<report::ProgressGroup> groups_of(const Plan& plan) {
  std::vector<report::ProgressGroup> groups;
  groups.reserve(plan.groups.size());
  for (const PlannedGroup& group : plan.groups) groups.push_back({.name = group.name});
  for (const PlannedTask& task : plan.tasks) {
    report::ProgressGroup& group = groups[plan.shapes[task.shape.value].group.value];
    ++group.tasks;
    if (task.finished_before) ++group.finished;
  }
  return groups;
}

/// How long the end of a run waits for a terminal that takes no text.
constexpr Duration kOutputPatience{2'000};

report::ProgressOptions progress_of(const Job& job, const Plan& plan, io::Output& output) {
  return {
      .groups = groups_of(plan),
      .name_of =
          [&job](TaskIndex task) {
            return fmt::format("{}/{}", job.plan().groups[job.group_of(task).value].name,
                               job.task_id(task));
          },
      .stderr_of = [&job](AttemptKey key) { return seen_from_here(job.launch(key).stderr_path); },
      .terminal = io::can_redraw(io::kStandardError),
      .width = [] { return io::terminal_width(io::kStandardError); },
      .write = [&output](std::string_view text) { output.write(text); }};
}

/// After an interrupt, the way on.
void tell_way_on(JournalReader& reader, const std::string& run_directory) {
  const Result<std::vector<ExecutionRow>> executions = reader.executions();
  if (!executions || executions->empty()) return;
  if (executions->back().how != report::kInterrupted) return;
  io::write_text(io::kStandardError,
                 fmt::format("trainyard: interrupted; 'trainyard run --resume {}' goes on\n",
                             shell_word(seen_from_here(run_directory))));
}

/// Whether all tasks of a run have finished.
Result<ExitCode> verdict_of(JournalReader& reader) {
  const Result<std::vector<GroupRow>> groups = reader.groups();
  if (!groups) return std::unexpected(groups.error());
  for (const GroupRow& group : *groups) {
    if (group.finished < group.tasks) return ExitCode::TaskFailed;
  }
  return ExitCode::Success;
}

}  // namespace

RunView::RunView(const Job& job, const Plan& plan)
    : output_(io::kStandardError), progress_(progress_of(job, plan, output_)) {}

void RunView::finish() {
  progress_.finish();
  output_.finish(kOutputPatience);
}

ExitCode show_results(const std::string& run_directory, bool json) {
  Result<JournalReader> reader = JournalReader::open(journal_path(run_directory));
  if (!reader) return fail(reader.error(), ExitCode::TaskFailed);
  const auto written = report::write_reports(*reader, run_directory);
  if (!written) fail(written.error());
  report::Sink sink = print;
  const bool terminal = io::is_terminal(io::kStandardOutput);
  const Result<void> shown =
      json ? report::write_status_json(
                 *reader, {.run_directory = run_directory, .now_unix_ms = io::unix_milliseconds()},
                 true, sink)
           : report::write_tables(*reader,
                                  {.width = terminal ? io::terminal_width(io::kStandardOutput) : 0,
                                   .colour = io::takes_colour(io::kStandardOutput)},
                                  sink);
  if (!shown) return fail(shown.error(), ExitCode::TaskFailed);
  if (!json && written)
    print(fmt::format("reports: {}/reports/index.html\n", seen_from_here(run_directory)));
  const Result<ExitCode> verdict = verdict_of(*reader);
  if (verdict && *verdict != ExitCode::Success) tell_way_on(*reader, run_directory);
  return verdict ? *verdict : fail(verdict.error(), ExitCode::TaskFailed);
}

}  // namespace trainyard::cli
