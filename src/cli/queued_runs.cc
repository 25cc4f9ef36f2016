#include "cli/queued_runs.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <ranges>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/run_result.h"
#include "base/list_text.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/known_runs.h"
#include "journal/reader.h"
#include "model/status.h"
#include "model/waiting.h"
#include "queue/queue_server.h"
#include "run/active_run.h"
#include "run/begun.h"
#include "run/run_directory.h"
#include "run/run_numbers.h"
#include "sys/clock.h"
#include "sys/fifo.h"
#include "sys/files.h"
#include "sys/open_file.h"
#include "sys/process_limits.h"
#include "sys/process_scan.h"
#include "sys/this_process.h"

namespace trainyard::cli {
namespace {

using Where = queue::QueueFiles::Place;

/// After this time a new submission is in the queue, also one that copies its code first.
constexpr Duration kSubmittedWithin{24 * 3'600'000};

/// A run by its number, and this user's queue, which may have it.
struct RunInQueue {
  queue::QueueFiles files;
  std::uint32_t number = 0;

  [[nodiscard]] std::optional<Where> place() const { return files.place_of(number); }
  [[nodiscard]] Result<queue::Submission> read() const {
    const std::optional<Where> at = place();
    return at ? files.read(*at, number) : std::unexpected(Error{""});
  }
  [[nodiscard]] std::optional<queue::Submission> submission() const {
    Result<queue::Submission> found = read();
    return found ? std::optional(*std::move(found)) : std::nullopt;
  }
};

/// Nothing for a run without a number.
std::optional<RunInQueue> in_queue(std::optional<std::uint32_t> number) {
  Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  if (!number || !files) return std::nullopt;
  return RunInQueue{.files = *std::move(files), .number = *number};
}

/// The text of how_queue_resumes().
std::string how_resumed(const RunInQueue& run) {
  if (run.place() != Where::Begun) return {};
  if (!run.files.server()) return "'trainyard up' resumes it";
  const std::optional<queue::Submission> begun = run.submission();
  return begun && begun->incomplete ? app::how_resumed(*begun->incomplete, sys::unix_milliseconds())
                                    : "your queue resumes it";
}

queue::FateOf fates_in(const queue::QueueFiles& files) {
  return [&files](std::uint32_t number) { return fate_of_run(files, number); };
}

/// The need of the tasks of an active run that wait for room.
queue::RoomNeed need_of_run(const std::string& run_directory) {
  auto reader = journal::JournalReader::open(run::journal_path(run_directory));
  const auto waiting = reader ? reader->waiting() : std::unexpected(reader.error());
  return waiting ? app::room_need(*waiting) : queue::RoomNeed{};
}

/// Reads the queue, and the journal of each of its active runs if submissions wait.
app::QueueView view_queue(const queue::QueueFiles& files) {
  app::QueueView view{.idle = why_nothing_begins(files)};
  for (const std::uint32_t number : files.numbers(Where::Waiting)) {
    const Result<queue::Submission> read = files.read(Where::Waiting, number);
    if (read) view.waiting.push_back(queue::queued(*read));
  }
  queue::order_queue(view.waiting);
  if (view.waiting.empty()) return view;
  for (const std::uint32_t number : files.numbers(Where::Begun)) {
    const Result<queue::Submission> begun = files.read(Where::Begun, number);
    if (!begun) continue;
    if (run::active_process(begun->run_directory)) {
      const queue::RoomNeed need = need_of_run(begun->run_directory);
      if (need.cause == model::Cause::None) continue;
      view.without_room.push_back({.submission = queue::queued(*begun), .need = need});
    } else if (const auto& incomplete = begun->incomplete;
               view.blocking == 0 && incomplete && !incomplete->began) {
      view.blocking = number;
    }
  }
  return view;
}

/// Whether a task of the run in this directory has started in an execution that began after a time.
Result<bool> ran_after(const std::string& run_directory, std::int64_t unix_ms) {
  auto reader = journal::JournalReader::open(run::journal_path(run_directory));
  const auto executions = reader ? reader->executions() : std::unexpected(reader.error());
  if (!executions) return std::unexpected(executions.error());
  const auto later = std::ranges::find_if(*executions, [unix_ms](const auto& execution) {
    return execution.started_unix_ms > unix_ms;
  });
  if (later == executions->end()) return false;
  // An execution that resumes a run of which all has ended starts nothing.
  bool ran = false;
  const Result<void> read = reader->tasks({}, [&ran, &later](const journal::TaskRow& task) {
    ran = task.started && *task.started >= later->started;
    return !ran;
  });
  if (!read) return std::unexpected(read.error());
  return ran;
}

/// The start of the oldest outcome, or running task, of a run; nothing if all of its tasks are still
/// to run.
Result<std::optional<std::int64_t>> oldest_start(const std::string& run_directory) {
  auto reader = journal::JournalReader::open(run::journal_path(run_directory));
  const auto executions = reader ? reader->executions() : std::unexpected(reader.error());
  if (!executions) return std::unexpected(executions.error());
  std::optional<Instant> oldest;
  const Result<void> read = reader->tasks({}, [&oldest](const journal::TaskRow& task) {
    const bool counts = task.standing.verdict == model::Verdict::Finished ||
                        task.standing.verdict == model::Verdict::Failed || task.pid != 0;
    if (counts && task.started) oldest = std::min(oldest.value_or(*task.started), *task.started);
    return true;
  });
  if (!read) return std::unexpected(read.error());
  std::optional<std::int64_t> start;
  for (const journal::ExecutionRow& execution : *executions) {
    if (!oldest || execution.started > *oldest) continue;
    start = execution.started_unix_ms + (*oldest - execution.started).count();
  }
  return start;
}

app::LivingRun look_at(const run::RunNumbers::Numbered& numbered) {
  app::LivingRun living{.number = numbered.number, .directory = numbered.directory};
  auto reader = journal::JournalReader::open(run::journal_path(numbered.directory));
  const auto groups = reader ? reader->groups() : std::unexpected(reader.error());
  if (!groups) return living;
  for (const journal::GroupRow& group : *groups) {
    living.tasks += group.tasks;
    living.finished += group.finished;
    living.failed += group.failed;
    living.running += group.running;
  }
  const auto executions = reader->executions();
  living.is_stopping = executions && !executions->empty() && !executions->back().ended &&
                       executions->back().is_interrupted();
  return living;
}

/// ", and run 3, which was skipped because of it": the rest of the cure for a submission whose
/// directory is gone. Empty for any other, or where none was skipped.
std::string behind_gone_directory(const queue::QueueFiles& files,
                                  const queue::EndedSubmission& ended) {
  if (ended.no_start != queue::NoStart::DirectoryGone) return {};
  std::vector<std::uint32_t> numbers;
  for (const queue::Submission& submission : queue::skipped_because_of(files, ended.number)) {
    if (time_of_no_start(submission.run_directory)) numbers.push_back(submission.number);
  }
  if (numbers.empty()) return {};
  return numbers.size() == 1
             ? fmt::format(", and run {}, which was skipped because of it", numbers.front())
             : fmt::format(", and runs {}, which were skipped because of it", ranges_of(numbers));
}

std::string way_on(const std::string& run_directory) {
  return command_for_run("run --resume", run_directory) + " resumes it";
}

/// False for a run whose tasks were killed before they started: they are SKIPPED.
bool has_failed_task(const std::string& run_directory) {
  Result<journal::JournalReader> reader = open_run(run_directory);
  const auto groups = reader ? reader->groups() : std::unexpected(reader.error());
  return !groups || std::ranges::any_of(
                        *groups, [](const journal::GroupRow& group) { return group.failed > 0; });
}

}  // namespace

int count_finished(const std::string& run_directory) {
  return look_at({.number = 0, .directory = run_directory}).finished;
}

queue::Fate fate_of_run(const queue::QueueFiles& files, std::uint32_t number) {
  const std::optional<Where> place = files.place_of(number);
  if (place && place != Where::Ended) return queue::Fate::NotEnded;
  const auto ended = files.ended(number);
  if (ended && !ended->is_resumed) {
    return ended->exit_code == 0 ? queue::Fate::EndedWell : queue::Fate::EndedBadly;
  }
  const std::optional<std::string> directory = directory_of_run(number);
  if (!directory) return queue::Fate::Unknown;
  const Result<RunOutcome> outcome = outcome_of(*directory);
  if (!outcome || outcome->stage == RunOutcome::Stage::NotBegun) return queue::Fate::Unknown;
  if (outcome->stage == RunOutcome::Stage::AtWork) return queue::Fate::NotEnded;
  return outcome->code == ExitCode::Success ? queue::Fate::EndedWell : queue::Fate::EndedBadly;
}

std::string resume_command(std::uint32_t number) {
  using Stage = RunOutcome::Stage;
  const std::optional<std::string> directory = directory_of_run(number);
  // A later run may have the directory.
  if (!directory || number_of_run(*directory) != number) return {};
  const Result<RunOutcome> outcome = outcome_of(*directory);
  if (!outcome) return {};
  const bool is_incomplete =
      outcome->stage == Stage::Over &&
      (outcome->code == ExitCode::NotDone ||
       (outcome->code == ExitCode::TaskFailed && !has_failed_task(*directory)));
  if (outcome->stage != Stage::Died && outcome->stage != Stage::Interrupted && !is_incomplete) {
    return {};
  }
  return command_for_run("run --resume", *directory);
}

std::string reason_of_end(const queue::QueueFiles& files, const queue::EndedSubmission& ended) {
  if (ended.no_start != queue::NoStart::Skipped) return ended.why;
  const Result<queue::Submission> kept = files.read(Where::Ended, ended.number);
  if (!kept) return ended.why;
  return queue::present_reason(queue::queued(*kept), ended.why, fates_in(files));
}

Result<std::vector<std::uint32_t>> needs_run_again(const std::string& run_directory) {
  std::vector<std::uint32_t> again;
  // A run that cannot be read for another reason, as one that has not begun, has no outcome.
  const auto unless_of_machine = [&again](const Error& error) {
    return error.of_machine ? Result<std::vector<std::uint32_t>>(std::unexpected(error)) : again;
  };
  const auto run = in_queue(number_of_run(run_directory));
  if (!run) return again;
  const Result<queue::Submission> submission = run->read();
  if (!submission) return unless_of_machine(submission.error());
  if (submission->run_if == model::RunIf::Failure || submission->needs.empty()) return again;
  const Result<std::optional<std::int64_t>> start = oldest_start(run_directory);
  if (!start) return unless_of_machine(start.error());
  if (!*start) return again;
  for (const std::uint32_t needed : submission->needs) {
    const std::optional<std::string> directory = directory_of_run(needed);
    if (!directory) continue;
    const Result<bool> ran = ran_after(*directory, **start);
    if (!ran && ran.error().of_machine) return std::unexpected(ran.error());
    if (ran.value_or(false)) again.push_back(needed);
  }
  return again;
}

std::string how_runs_again(const std::string& run_directory) {
  if (waits_in_queue(run_directory)) return "your queue runs it again";
  return fmt::format("{}'trainyard retry {} --cascade' runs it again",
                     run::active_process(run_directory) ? "when it has ended, " : "",
                     number_of_run(run_directory).value_or(0));
}

std::string why_suspended(const queue::QueueFiles& files) {
  const std::optional<std::int64_t> server = files.server();
  if (!server || !sys::is_suspended(*server)) return {};
  return fmt::format("your queue is suspended: 'kill -CONT {}' resumes it", *server);
}

std::string how_queue_resumes(const std::string& run_directory) {
  const auto run = in_queue(number_of_run(run_directory));
  return run ? how_resumed(*run) : std::string();
}

std::string prospect_in_queue(const std::string& run_directory) {
  const auto run = in_queue(number_of_run(run_directory));
  if (!run) return {};
  if (std::string how = how_resumed(*run); !how.empty()) return how;
  const auto ended = run->files.ended(run->number);
  if (!ended || ended->no_start || ended->why.empty()) return {};
  return fmt::format("your queue has given it up ({}); {}", ended->why, way_on(run_directory));
}

std::string why_nothing_begins(const queue::QueueFiles& files) {
  if (!files.server()) return "your queue is down: 'trainyard up' starts it";
  if (std::string why = why_suspended(files); !why.empty()) return why;
  if (!files.is_draining()) return {};
  return "your queue starts no more runs and goes down when its active runs have ended: 'trainyard "
         "up' keeps it up";
}

std::string lesser_limits(const queue::QueueFiles& files) {
  const std::optional<std::int64_t> server = files.server();
  if (!server) return {};
  const auto its = sys::limits_of(*server);
  const auto own = sys::limits_of(sys::own_pid());
  if (!its || !own) return {};
  const auto lacking = sys::not_to_be_given(*its, sys::may_raise(*server), *own);
  if (lacking.empty()) return {};
  return fmt::format(
      "your queue was started with stricter limits than this shell has ({}): to run submissions "
      "with the limits of this shell, type 'trainyard down' and then 'trainyard up' here",
      fmt::join(lacking, "; "));
}

std::optional<Error> why_not_begun(const std::string& run_directory) {
  const auto run = in_queue(number_of_run(run_directory));
  if (!run) return std::nullopt;
  const queue::QueueFiles& files = run->files;
  const std::uint32_t number = run->number;
  if (const auto ended = files.ended(number)) {
    if (!ended->no_start) {
      return Error{fmt::format("run {} has ended, and its journal is gone", number)};
    }
    // The message ends with the log of the run, which a run that was skipped does not have.
    const std::string log = run::run_log_path(run_directory);
    const auto printed = sys::read_end_of_file(log, 1, sys::Links::Refuse);
    return Error{fmt::format("run {} will not start: {}{}{}", number, reason_of_end(files, *ended),
                             behind_gone_directory(files, *ended),
                             printed && !printed->empty() ? ", see " + seen_from_here(log) : "")};
  }
  const auto in_queue_as = [number](std::string_view why) {
    return Error{fmt::format("run {} is in your queue: {}", number, why)};
  };
  const Result<queue::Submission> begun = files.read(Where::Begun, number);
  if (begun) {
    if (const auto& incomplete = begun->incomplete) {
      return in_queue_as(app::why_paused(*incomplete, sys::unix_milliseconds()));
    }
  }
  const app::QueueView view = view_queue(files);
  const auto found = std::ranges::find(view.waiting, number, &queue::QueuedSubmission::number);
  if (found == view.waiting.end()) return std::nullopt;
  const auto place = static_cast<std::size_t>(found - view.waiting.begin());
  return in_queue_as(app::why_waiting(view, place, fates_in(files)));
}

bool waits_in_queue(const std::string& run_directory) {
  const auto run = in_queue(number_of_run(run_directory));
  return run && run->place() == Where::Waiting;
}

std::optional<queue::Submission> submission_in_queue(const std::string& run_directory) {
  const auto run = in_queue(number_of_run(run_directory));
  return run && run->place() != Where::Ended ? run->submission() : std::nullopt;
}

bool goes_on_in_queue(const std::string& run_directory) {
  const std::optional<std::uint32_t> number = number_of_run(run_directory);
  return number && goes_on_in_queue(run_directory, *number);
}

bool goes_on_in_queue(const std::string& run_directory, std::uint32_t number) {
  const auto run = in_queue(number);
  const auto place = run ? run->place() : std::nullopt;
  if (place != Where::Begun) return place == Where::Waiting;
  const Result<queue::Submission> begun = run->files.read(Where::Begun, number);
  if (begun && begun->incomplete) return true;
  const Result<RunOutcome> outcome = outcome_of(run_directory);
  return !outcome || outcome->stage != RunOutcome::Stage::Over;
}

bool is_known_without_directory(std::uint32_t number) {
  const auto run = in_queue(number);
  const auto place = run ? run->place() : std::nullopt;
  if (place != Where::Ended) return place.has_value();
  const auto ended = run->files.ended(number);
  return ended && ended->no_start == queue::NoStart::DirectoryGone;
}

std::int64_t time_of_submission(std::uint32_t number) {
  const auto run = in_queue(number);
  const auto submission = run ? run->submission() : std::nullopt;
  return submission ? submission->submitted_unix_ms : 0;
}

std::optional<std::int64_t> time_of_no_start(const std::string& run_directory) {
  if (!sys::exists(run::submission_path(run_directory)) ||
      sys::exists(run::journal_path(run_directory))) {
    return std::nullopt;
  }
  const Result<bool> begun = run::has_begun(run_directory);
  if (!begun || *begun || goes_on_in_queue(run_directory)) return std::nullopt;
  const auto run = in_queue(number_of_run(run_directory));
  const auto ended = run ? run->files.ended(run->number) : std::nullopt;
  if (ended) return ended->ended_unix_ms;
  // The queue forgets the oldest submissions. A young one that it does not have is being submitted.
  const std::int64_t submitted = queue::read_mark(run_directory).submitted_unix_ms;
  const bool is_old =
      submitted != 0 && submitted + kSubmittedWithin.count() < sys::unix_milliseconds();
  return is_old ? std::optional(submitted) : std::nullopt;
}

void forget_end_in_queue(const std::string& run_directory) {
  if (const auto run = in_queue(number_of_run(run_directory))) run->files.forget_end(run->number);
}

bool is_about_to_begin(const std::string& run_directory) {
  const auto run = in_queue(number_of_run(run_directory));
  if (!run) return false;
  const Result<queue::Submission> begun = run->files.read(Where::Begun, run->number);
  return begun && !begun->incomplete && run->files.server();
}

std::optional<std::string> take_out_of_queue(const std::string& run_directory) {
  const auto run = in_queue(number_of_run(run_directory));
  if (!run) return std::nullopt;
  const auto& [files, number] = *run;
  std::string message = fmt::format("run {} was removed from your queue\n", number);
  if (files.cancel(number)) {
    // Submissions that need it are skipped or begin now. A queue that is down looks when it is up.
    static_cast<void>(sys::tell_fifo(files.words_path(), queue::kLookWord));
    return message;
  }
  // A run that was stopped with the queue, or died with it, is left alone until the queue is up, and
  // an incomplete one until the queue resumes it.
  const Result<queue::Submission> begun = files.read(Where::Begun, number);
  const bool is_paused = begun && begun->incomplete;
  const bool is_left = begun && (is_paused || !files.server()) &&
                       !run::active_process(run_directory) && goes_on_in_queue(run_directory);
  if (!is_left) return std::nullopt;
  const Result<void> ended = files.end({.number = number,
                                        .run_directory = run_directory,
                                        .exit_code = static_cast<int>(ExitCode::Interrupted),
                                        .ended_unix_ms = sys::unix_milliseconds(),
                                        .is_resumed = begun->runs_again});
  if (!ended) return std::nullopt;
  static_cast<void>(sys::tell_fifo(files.words_path(), queue::kLookWord));
  return message;
}

std::vector<app::LivingRun> living_runs() {
  std::vector<app::LivingRun> living;
  const Result<run::RunNumbers> numbers = run::RunNumbers::of_this_user();
  if (!numbers) return living;
  const auto is_listed = [&living](std::uint32_t number) {
    return std::ranges::find(living, number, &app::LivingRun::number) != living.end();
  };
  // In the order in which a run goes from one to the next: none is missed between two of them.
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  const app::QueueView view = files ? view_queue(*files) : app::QueueView{};
  const auto begun = files ? files->numbers(Where::Begun) : std::vector<std::uint32_t>();
  const std::vector<process::Watcher> watchers = process::find_watchers();
  for (const run::RunNumbers::Numbered& each : numbers->all() | std::views::reverse) {
    const auto holder = run::active_process(each.directory, watchers);
    if (!holder) continue;
    living.push_back(look_at(each));
    living.back().is_suspended = sys::is_suspended(*holder);
  }
  const auto add_queued = [&](std::uint32_t number, std::string reason) {
    living.push_back({.number = number,
                      .directory = numbers->directory_of(number).value_or(""),
                      .is_queued = true,
                      .reason = std::move(reason)});
  };
  for (const std::uint32_t number : begun) {
    if (is_listed(number)) continue;
    const Result<queue::Submission> submission = files->read(Where::Begun, number);
    const auto incomplete = submission ? submission->incomplete : std::nullopt;
    // The run has ended, and the queue has not seen that yet.
    const Result<RunOutcome> outcome = outcome_of(numbers->directory_of(number).value_or(""));
    if (!incomplete && outcome && outcome->stage == RunOutcome::Stage::Over) continue;
    add_queued(number, !view.idle.empty() ? view.idle
                       : incomplete       ? app::why_paused(*incomplete, sys::unix_milliseconds())
                                          : "is starting");
  }
  for (std::size_t i = 0; i < view.waiting.size(); ++i) {
    const std::uint32_t number = view.waiting[i].number;
    if (!is_listed(number)) add_queued(number, app::why_waiting(view, i, fates_in(*files)));
  }
  for (app::LivingRun& run : living) run.shown = seen_from_here(run.directory);
  return living;
}

std::vector<app::LivingRun> runs_without_start() {
  std::vector<app::LivingRun> runs;
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  const Result<run::RunNumbers> numbers = run::RunNumbers::of_this_user();
  if (!files || !numbers) return runs;
  const std::vector<process::Watcher> watchers = process::find_watchers();
  for (const std::uint32_t number : files->numbers(Where::Ended)) {
    const std::optional<queue::EndedSubmission> ended = files->ended(number);
    if (!ended) continue;
    const std::string& directory = ended->run_directory;
    std::optional<app::LivingRun> row = app::row_of_end(*ended, sys::unix_milliseconds(), [&] {
      return app::EndedDirectory{.shown = seen_from_here(directory),
                                 .is_its_own = numbers->directory_of(number) == directory,
                                 .is_active = run::active_process(directory, watchers).has_value(),
                                 .has_submission = sys::exists(run::submission_path(directory)),
                                 .has_journal = sys::exists(run::journal_path(directory))};
    });
    if (!row) continue;
    if (row->no_start) row->reason = reason_of_end(*files, *ended);
    runs.push_back(*std::move(row));
  }
  return runs;
}

Result<RunOutcome> outcome_of(const std::string& run_directory) {
  using Stage = RunOutcome::Stage;
  if (run::active_process(run_directory)) return RunOutcome{.stage = Stage::AtWork};
  const Result<bool> begun = run::has_begun(run_directory);
  if (!begun) return std::unexpected(begun.error());
  if (!*begun) return RunOutcome{.stage = Stage::NotBegun};
  Result<journal::JournalReader> reader =
      journal::JournalReader::open(run::journal_path(run_directory));
  if (!reader) return std::unexpected(std::move(reader.error()));
  Result<std::vector<journal::ExecutionRow>> executions = reader->executions();
  if (!executions) return std::unexpected(std::move(executions.error()));
  app::InactiveRun run{.executions = *std::move(executions),
                       .groups = {},
                       .first_tasks = {},
                       .way_on = way_on(run_directory)};
  // The tasks decide nothing where the run has not ended by itself.
  if (run.executions.empty() || !run.executions.back().ended ||
      run.executions.back().is_interrupted()) {
    return app::outcome_of_inactive(run);
  }
  Result<std::vector<journal::GroupRow>> groups = reader->groups();
  if (!groups) return std::unexpected(std::move(groups.error()));
  run.groups = *std::move(groups);
  const Result<void> read =
      reader->tasks({.group = std::nullopt, .at_most = 2}, [&run](journal::TaskRow row) {
        run.first_tasks.push_back(std::move(row));
        return true;
      });
  if (!read) return std::unexpected(read.error());
  return app::outcome_of_inactive(run);
}

}  // namespace trainyard::cli
