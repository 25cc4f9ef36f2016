#include "cli/run_view.h"

#include <cstdint>
#include <expected>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "app/run_result.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/known_runs.h"
#include "journal/reader.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/status.h"
#include "report/retry_advice.h"
#include "report/sink.h"
#include "report/status.h"
#include "report/write_reports.h"
#include "run/run_directory.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/terminal.h"

namespace trainyard::cli {
namespace {

/// The time that the end of a run waits for a terminal that takes no text.
constexpr Duration kOutputPatience{2'000};

report::ProgressOptions progress_of(const job::Jobs& jobs, sys::Output& output) {
  return {.name_of = [&jobs](model::TaskIndex task) { return jobs.name_of(task); },
          .log_of =
              [&jobs](model::AttemptKey key) {
                model::Launch launch = jobs.launch(key, {}, {});
                // The scheduler runs on this thread, so nothing here waits for a disk.
                return run::log_with_text({.stdout_path = std::move(launch.stdout_path),
                                           .stderr_path = std::move(launch.stderr_path)},
                                          sys::known_size)
                    .transform(seen_from_here);
              },
          .batch_name =
              [&jobs](std::uint32_t number) {
                const auto repeat = jobs.at(number - 1).repeat();
                return repeat ? fmt::format("round {} of at most {}", repeat->round,
                                            repeat->rounds_max)
                              : fmt::format("submission {}", number);
              },
          .terminal = sys::can_redraw(sys::kStandardError),
          .width = [] { return sys::terminal_width(sys::kStandardError); },
          .write = [&output](std::string_view text) { output.write(text); }};
}

bool was_interrupted(journal::JournalReader& reader) {
  const Result<std::vector<journal::ExecutionRow>> executions = reader.executions();
  return executions && !executions->empty() && executions->back().is_interrupted();
}

/// The commands that run failed tasks again.
Result<report::RetryAdvice> retry_advice(journal::JournalReader& reader) {
  report::RetryAdvice advice;
  const Result<void> read = reader.tasks({.failed = true}, [&advice](const journal::TaskRow& row) {
    advice.look_at(row);
    return true;
  });
  if (!read) return std::unexpected(read.error());
  return advice;
}

/// After an interrupt, the way on.
void tell_way_on(journal::JournalReader& reader, const std::string& run_directory) {
  if (!was_interrupted(reader)) return;
  note("interrupted; resume it with " + command_for_run("run --resume", run_directory));
}

/// The number of skipped tasks; 0 if the journal cannot be read.
std::int64_t count_skipped(journal::JournalReader& reader) {
  const Result<std::vector<journal::GroupRow>> groups = reader.groups();
  std::int64_t skipped = 0;
  if (!groups) return skipped;
  for (const journal::GroupRow& group : *groups) skipped += group.skipped;
  return skipped;
}

/// After a retry of some tasks, how the tasks run that it left SKIPPED.
void tell_what_stays_skipped(journal::JournalReader& reader, const std::string& run_directory) {
  const std::int64_t skipped = count_skipped(reader);
  if (skipped == 0) return;
  note(fmt::format("{} still SKIPPED: {} runs all tasks that have not finished",
                   skipped == 1 ? "1 task is" : fmt::format("{} tasks are", skipped),
                   command_for_run("run --resume", run_directory)));
}

/// Whether all tasks succeeded, or, if there are retries, those.
Result<ExitCode> verdict_of(journal::JournalReader& reader,
                            const std::vector<wire::Retry>& retries) {
  if (!retries.empty()) {
    std::set<std::pair<std::string, std::string>> left;
    for (const wire::Retry& retry : retries) left.emplace(retry.group, retry.id);
    const Result<void> read = reader.tasks({}, [&left](const journal::TaskRow& row) {
      const model::Verdict verdict = row.standing.verdict;
      // Unlike schedule::is_well(): a retry that left its task NOT_SELECTED did not run it.
      if (verdict == model::Verdict::Finished || verdict == model::Verdict::NotNeeded) {
        left.erase({row.group_name, row.id});
      }
      return !left.empty();
    });
    if (!read) return std::unexpected(read.error());
    return left.empty() ? ExitCode::Success : ExitCode::TaskFailed;
  }
  const Result<std::vector<journal::GroupRow>> groups = reader.groups();
  if (!groups) return std::unexpected(groups.error());
  return app::exit_code_of(*groups);
}

}  // namespace

RunView::RunView(const job::Jobs& jobs)
    : output_(sys::kStandardError), progress_(progress_of(jobs, output_)) {}

void RunView::finish() {
  progress_.finish();
  output_.finish(kOutputPatience);
}

ExitCode show_results(const std::string& run_directory, const ResultsView& view) {
  Result<journal::JournalReader> reader =
      journal::JournalReader::open(run::journal_path(run_directory));
  if (!reader) return fail(reader.error(), ExitCode::NotDone);
  const auto written = report::write_reports(*reader, run_directory);
  if (!written) fail(written.error());
  Printer printer;
  report::Sink sink = [&printer](std::string_view text) { printer.print(text); };
  // The tables may be in colour.
  report::Sink tables = [&printer](std::string_view text) { printer.print_bytes(text); };
  const bool terminal = sys::is_terminal(sys::kStandardOutput);
  const Result<void> shown =
      view.json
          ? report::write_status_json(*reader,
                                      {.run_directory = run_directory,
                                       .number = number_of_run(run_directory),
                                       .now_unix_ms = sys::unix_milliseconds()},
                                      true, sink)
          : report::write_tables(*reader,
                                 {.width = terminal ? sys::terminal_width(sys::kStandardOutput) : 0,
                                  .colour = sys::takes_colour(sys::kStandardOutput),
                                  .over = true,
                                  .run_directory = seen_from_here(run_directory)},
                                 tables);
  if (!shown) return fail(shown.error(), ExitCode::NotDone);
  if (!view.json) {
    for (const std::string& warning : view.warnings) sink("warning: " + warning + "\n");
    const Result<report::RetryAdvice> advice = retry_advice(*reader);
    if (!advice) return fail(advice.error(), ExitCode::NotDone);
    const std::string seen = seen_from_here(run_directory);
    const auto machines = reader->machines();
    const report::ResumableRun resumable{.directory = seen,
                                         .is_of_command = view.is_of_command,
                                         .has_gpus = !machines || report::has_gpus(*machines),
                                         .has_skipped = count_skipped(*reader) > 0};
    sink(advice->text(resumable));
    // Other lines name the command after an interrupt, and after a retry.
    if (view.retries.empty() && !was_interrupted(*reader)) sink(advice->resume_text(resumable));
  }
  if (!view.json && written)
    sink(fmt::format("reports: {}/reports/index.html\n", seen_from_here(run_directory)));
  const Result<ExitCode> verdict = verdict_of(*reader, view.retries);
  if (verdict && *verdict != ExitCode::Success) tell_way_on(*reader, run_directory);
  if (!view.retries.empty()) tell_what_stays_skipped(*reader, run_directory);
  if (!verdict) return fail(verdict.error(), ExitCode::NotDone);
  // A script that reads JSON has no other sign that it is lost. A table is for people, who see the
  // message.
  const bool lost = view.json && !printer.works();
  return lost && *verdict == ExitCode::Success ? ExitCode::TaskFailed : *verdict;
}

}  // namespace trainyard::cli
