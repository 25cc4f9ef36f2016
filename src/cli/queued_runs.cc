#include "cli/queued_runs.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <filesystem>
#include <ranges>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/duration_text.h"
#include "base/list_text.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/known_runs.h"
#include "cli/run_outcome.h"
#include "journal/reader.h"
#include "model/waiting.h"
#include "queue/queue_server.h"
#include "report/terminal_text.h"
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
#include "text/readable_json.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

using Where = queue::QueueFiles::Place;

/// `status` shows a submission that did not start for this time, and this number of them.
constexpr Duration kToldFor{24 * 3'600'000};
constexpr std::ptrdiff_t kEndedShown = 20;
/// A longer reason would widen all rows; `status` of the submission shows it in full.
constexpr int kNoStartColumnsMax = 60;
/// After this time a new submission is in the queue, also one that copies its code first.
constexpr Duration kSubmittedWithin{24 * 3'600'000};

/// The submissions that wait, in the order in which they would begin.
std::vector<queue::QueuedSubmission> queued_in(const queue::QueueFiles& files) {
  std::vector<queue::QueuedSubmission> waiting;
  for (const std::uint32_t number : files.numbers(Where::Waiting)) {
    const Result<queue::Submission> read = files.read(Where::Waiting, number);
    if (read) waiting.push_back(queue::queued(*read));
  }
  queue::order_queue(waiting);
  return waiting;
}

/// Returns a run of the queue if it waits for room, by its journal.
std::optional<queue::RunWithoutRoom> run_without_room(const queue::QueueFiles& files,
                                                      std::uint32_t number) {
  const Result<queue::Submission> submission = files.read(Where::Begun, number);
  if (!submission || !sys::RunLock::holder(submission->run_directory)) return std::nullopt;
  auto reader = journal::JournalReader::open(run::journal_path(submission->run_directory));
  const auto waiting = reader ? reader->waiting() : std::unexpected(reader.error());
  if (!waiting) return std::nullopt;
  queue::RoomNeed need;
  for (const journal::WaitingReason& each : *waiting) {
    if (!queue::waits_for_room(each.cause)) continue;
    need = queue::joined(need, {.cause = each.cause, .memory = each.memory, .cpus = each.cpus});
  }
  if (need.cause == model::Cause::None) return std::nullopt;
  return queue::RunWithoutRoom{.submission = queue::queued(*submission), .need = need};
}

/// Reads the journal of each run of the queue that is at work.
std::vector<queue::RunWithoutRoom> runs_without_room(const queue::QueueFiles& files) {
  std::vector<queue::RunWithoutRoom> without_room;
  for (const std::uint32_t number : files.numbers(Where::Begun)) {
    if (const auto run = run_without_room(files, number)) without_room.push_back(*run);
  }
  return without_room;
}

/// "8 runs before it wait for room: 2 to 9 (GPU, memory)", with their missing resources; or empty.
std::string held_back_by(const queue::QueuedSubmission& submission,
                         const std::vector<queue::RunWithoutRoom>& without_room) {
  std::vector<std::uint32_t> numbers;
  std::set<std::string_view> lacks;
  for (const queue::RunWithoutRoom& run : without_room) {
    if (!queue::holds_back(run, submission)) continue;
    numbers.push_back(run.submission.number);
    if (run.need.cause == model::Cause::Gpus) lacks.insert("GPU");
    if (run.need.cause == model::Cause::Memory) lacks.insert("memory");
    if (queue::lacks_cpus(run.need.cause)) lacks.insert("CPUs");
  }
  if (numbers.empty()) return {};
  const bool is_one = numbers.size() == 1;
  return fmt::format("{} run{} before it wait{} for room: {}{}", numbers.size(), is_one ? "" : "s",
                     is_one ? "s" : "", ranges_of(numbers),
                     lacks.empty() ? "" : fmt::format(" ({})", fmt::join(lacks, ", ")));
}

/// The reason why a submission with this number before it in the queue has not begun.
std::string reason_of(const queue::QueueFiles& files, const queue::QueuedSubmission& submission,
                      std::size_t before, const std::vector<queue::RunWithoutRoom>& without_room) {
  if (std::string why = why_nothing_begins(files); !why.empty()) return why;
  std::vector<std::uint32_t> needs;
  for (const std::uint32_t needed : submission.needs) {
    if (fate_of_run(files, needed) == queue::Fate::NotEnded) needs.push_back(needed);
  }
  if (!needs.empty()) {
    return fmt::format("waits for run{} {}", needs.size() == 1 ? "" : "s", fmt::join(needs, ", "));
  }
  if (std::string why = held_back_by(submission, without_room); !why.empty()) return why;
  if (before == 0) {
    for (const std::uint32_t number : files.numbers(Where::Begun)) {
      const Result<queue::Submission> begun = files.read(Where::Begun, number);
      if (begun && begun->incomplete && !begun->incomplete->began &&
          !sys::RunLock::holder(begun->run_directory)) {
        return fmt::format("waits until run {} can start", number);
      }
    }
    return "waits for the queue to start it";
  }
  return fmt::format("behind {} other run{} in the queue", before, before == 1 ? "" : "s");
}

/// Whether a task of the run in this directory has started in an execution that began after a time.
bool ran_after(const std::string& run_directory, std::int64_t unix_ms) {
  auto reader = journal::JournalReader::open(run::journal_path(run_directory));
  const auto executions = reader ? reader->executions() : std::unexpected(reader.error());
  if (!executions) return false;
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
  return read && ran;
}

/// The start of the oldest outcome, or running task, of a run; nothing if all of its tasks are still
/// to run.
std::optional<std::int64_t> oldest_start(const std::string& run_directory) {
  auto reader = journal::JournalReader::open(run::journal_path(run_directory));
  const auto executions = reader ? reader->executions() : std::unexpected(reader.error());
  if (!executions) return std::nullopt;
  std::optional<Instant> oldest;
  const Result<void> read = reader->tasks({}, [&oldest](const journal::TaskRow& task) {
    const bool counts = task.standing.verdict == model::Verdict::Finished ||
                        task.standing.verdict == model::Verdict::Failed || task.pid != 0;
    if (counts && task.started) oldest = std::min(oldest.value_or(*task.started), *task.started);
    return true;
  });
  std::optional<std::int64_t> start;
  for (const journal::ExecutionRow& execution : *executions) {
    if (!read || !oldest || execution.started > *oldest) continue;
    start = execution.started_unix_ms + (*oldest - execution.started).count();
  }
  return start;
}

LivingRun look_at(const run::RunNumbers::Numbered& numbered) {
  LivingRun living{.number = numbered.number, .directory = numbered.directory};
  auto reader = journal::JournalReader::open(run::journal_path(numbered.directory));
  const auto groups = reader ? reader->groups() : std::unexpected(reader.error());
  if (!groups) return living;
  for (const journal::GroupRow& group : *groups) {
    living.tasks += group.tasks;
    living.finished += group.finished;
    living.failed += group.failed;
    living.running += group.running;
  }
  return living;
}

/// The reason why a run that ended incomplete, or could not start, is not active.
std::string reason_of_pause(const queue::IncompleteRun& run) {
  const std::int64_t left = run.resumes_unix_ms - sys::unix_milliseconds();
  return fmt::format("{} in {}: {}", run.began ? "resumes" : "starts",
                     trainyard::to_text(Duration{std::max<std::int64_t>(left, 0)}), run.why);
}

std::string state_of(const LivingRun& run) {
  if (run.no_start == queue::NoStart::NotNeeded) return "NOT_NEEDED";
  if (run.no_start == queue::NoStart::Skipped) return "SKIPPED";
  if (run.no_start) return "REFUSED";
  if (run.is_given_up) return "INCOMPLETE";
  if (run.is_queued) return "QUEUED";
  return run.running > 0 ? "RUNNING" : "WAITING";
}

std::string done_of(const LivingRun& run) {
  if (run.no_start) return report::cut(run.reason, kNoStartColumnsMax);
  if (run.is_queued) return run.reason;
  if (run.tasks == 0) return "starting";
  std::string text = fmt::format("{} of {} finished", run.finished, run.tasks);
  if (run.running > 0) text += fmt::format(", {} running", run.running);
  if (run.failed > 0) text += fmt::format(", {} failed", run.failed);
  return text;
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
  const Result<run::RunNumbers> numbers = run::RunNumbers::of_this_user();
  const auto directory = numbers ? numbers->directory_of(number) : std::nullopt;
  if (!directory) return queue::Fate::Unknown;
  if (sys::RunLock::holder(*directory)) return queue::Fate::NotEnded;
  const Result<RunOutcome> outcome = outcome_of(*directory);
  if (!outcome || outcome->stage == RunOutcome::Stage::NotBegun) return queue::Fate::Unknown;
  return outcome->code == ExitCode::Success ? queue::Fate::EndedWell : queue::Fate::EndedBadly;
}

std::string reason_of_end(const queue::QueueFiles& files, const queue::EndedSubmission& ended) {
  if (ended.no_start != queue::NoStart::Skipped) return ended.why;
  const Result<queue::Submission> kept = files.read(Where::Ended, ended.number);
  if (!kept) return ended.why;
  return queue::present_reason(queue::queued(*kept), ended.why, [&files](std::uint32_t number) {
    return fate_of_run(files, number);
  });
}

std::vector<std::uint32_t> needs_run_again(const std::string& run_directory) {
  const std::optional<std::uint32_t> number = number_of_run(run_directory);
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  const auto place = number && files ? files->place_of(*number) : std::nullopt;
  const auto submission = place ? files->read(*place, *number) : std::unexpected(Error{""});
  if (!submission || submission->run_if == model::RunIf::Failure) return {};
  if (submission->needs.empty()) return {};
  const std::optional<std::int64_t> start = oldest_start(run_directory);
  const Result<run::RunNumbers> numbers = run::RunNumbers::of_this_user();
  if (!start || !numbers) return {};
  std::vector<std::uint32_t> again;
  for (const std::uint32_t needed : submission->needs) {
    const std::optional<std::string> directory = numbers->directory_of(needed);
    if (directory && ran_after(*directory, *start)) again.push_back(needed);
  }
  return again;
}

std::string how_runs_again(const std::string& run_directory) {
  if (waits_in_queue(run_directory)) return "your queue runs it again";
  return fmt::format("{}'trainyard retry {} --cascade' runs it again",
                     sys::RunLock::holder(run_directory) ? "when it has ended, " : "",
                     number_of_run(run_directory).value_or(0));
}

std::string why_suspended(const queue::QueueFiles& files) {
  const std::optional<std::int64_t> server = files.server();
  if (!server || !sys::is_suspended(*server)) return {};
  return fmt::format("your queue is suspended: 'kill -CONT {}' resumes it", *server);
}

std::string how_queue_resumes(const std::string& run_directory) {
  const std::optional<std::uint32_t> number = number_of_run(run_directory);
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  if (!number || !files || files->place_of(*number) != Where::Begun) return {};
  return files->server() ? "your queue resumes it" : "'trainyard up' resumes it";
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
  const std::optional<std::uint32_t> number = number_of_run(run_directory);
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  if (!number || !files) return std::nullopt;
  if (const auto ended = files->ended(*number)) {
    if (!ended->no_start) {
      return Error{fmt::format("run {} has ended, and its journal is gone", *number)};
    }
    // The message ends with the log of the run, which a run that was skipped does not have.
    const std::string log = run::run_log_path(run_directory);
    const auto printed = sys::read_end_of_file(log, 1, sys::Links::Refuse);
    return Error{fmt::format("run {} will not start: {}{}{}", *number,
                             reason_of_end(*files, *ended), behind_gone_directory(*files, *ended),
                             printed && !printed->empty() ? ", see " + seen_from_here(log) : "")};
  }
  const Result<queue::Submission> begun = files->read(Where::Begun, *number);
  if (begun && begun->incomplete) {
    return Error{
        fmt::format("run {} is in your queue: {}", *number, reason_of_pause(*begun->incomplete))};
  }
  const std::vector<queue::QueuedSubmission> waiting = queued_in(*files);
  const auto found = std::ranges::find(waiting, *number, &queue::QueuedSubmission::number);
  if (found == waiting.end()) return std::nullopt;
  return Error{
      fmt::format("run {} is in your queue: {}", *number,
                  reason_of(*files, *found, static_cast<std::size_t>(found - waiting.begin()),
                            runs_without_room(*files)))};
}

bool waits_in_queue(const std::string& run_directory) {
  const std::optional<std::uint32_t> number = number_of_run(run_directory);
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  return number && files && files->place_of(*number) == Where::Waiting;
}

bool goes_on_in_queue(const std::string& run_directory) {
  const std::optional<std::uint32_t> number = number_of_run(run_directory);
  return number && goes_on_in_queue(run_directory, *number);
}

bool goes_on_in_queue(const std::string& run_directory, std::uint32_t number) {
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  const auto place = files ? files->place_of(number) : std::nullopt;
  if (place != Where::Begun) return place == Where::Waiting;
  const Result<queue::Submission> begun = files->read(Where::Begun, number);
  if (begun && begun->incomplete) return true;
  const Result<RunOutcome> outcome = outcome_of(run_directory);
  return !outcome || outcome->stage != RunOutcome::Stage::Over;
}

bool is_known_without_directory(std::uint32_t number) {
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  const auto place = files ? files->place_of(number) : std::nullopt;
  if (place != Where::Ended) return place.has_value();
  const auto ended = files->ended(number);
  return ended && ended->no_start == queue::NoStart::DirectoryGone;
}

std::int64_t time_of_submission(std::uint32_t number) {
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  const auto place = files ? files->place_of(number) : std::nullopt;
  const auto submission = place ? files->read(*place, number) : std::unexpected(Error{""});
  return submission ? submission->submitted_unix_ms : 0;
}

std::optional<std::int64_t> time_of_no_start(const std::string& run_directory) {
  std::error_code ignored;
  const auto is_there = [&ignored](const std::string& path) {
    return std::filesystem::exists(path, ignored);
  };
  if (!is_there(run::submission_path(run_directory)) ||
      is_there(run::journal_path(run_directory))) {
    return std::nullopt;
  }
  const Result<bool> begun = run::has_begun(run_directory);
  if (!begun || *begun || goes_on_in_queue(run_directory)) return std::nullopt;
  const std::optional<std::uint32_t> number = number_of_run(run_directory);
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  const auto ended = number && files ? files->ended(*number) : std::nullopt;
  if (ended) return ended->ended_unix_ms;
  // The queue forgets the oldest submissions. A young one that it does not have is being submitted.
  const std::int64_t submitted = queue::read_mark(run_directory).submitted_unix_ms;
  const bool is_old =
      submitted != 0 && submitted + kSubmittedWithin.count() < sys::unix_milliseconds();
  return is_old ? std::optional(submitted) : std::nullopt;
}

void forget_end_in_queue(const std::string& run_directory) {
  const std::optional<std::uint32_t> number = number_of_run(run_directory);
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  if (number && files) files->forget_end(*number);
}

bool is_about_to_begin(const std::string& run_directory) {
  const std::optional<std::uint32_t> number = number_of_run(run_directory);
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  const auto begun =
      number && files ? files->read(Where::Begun, *number) : std::unexpected(Error{""});
  return begun && !begun->incomplete && files->server();
}

std::optional<std::string> take_out_of_queue(const std::string& run_directory) {
  const std::optional<std::uint32_t> number = number_of_run(run_directory);
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  if (!number || !files) return std::nullopt;
  std::string message = fmt::format("run {} was removed from your queue\n", *number);
  if (files->cancel(*number)) {
    // Submissions that need it are skipped or begin now. A queue that is down looks when it is up.
    static_cast<void>(sys::tell_fifo(files->words_path(), queue::kLookWord));
    return message;
  }
  // A run that was stopped with the queue, or died with it, is left alone until the queue is up, and
  // an incomplete one until the queue resumes it.
  const Result<queue::Submission> begun = files->read(Where::Begun, *number);
  const bool is_paused = begun && begun->incomplete;
  const bool is_left = begun && (is_paused || !files->server()) &&
                       !sys::RunLock::holder(run_directory) && goes_on_in_queue(run_directory);
  if (!is_left) return std::nullopt;
  const Result<void> ended = files->end({.number = *number,
                                         .run_directory = run_directory,
                                         .exit_code = static_cast<int>(ExitCode::Interrupted),
                                         .ended_unix_ms = sys::unix_milliseconds(),
                                         .is_resumed = begun->runs_again});
  if (!ended) return std::nullopt;
  static_cast<void>(sys::tell_fifo(files->words_path(), queue::kLookWord));
  return message;
}

std::vector<LivingRun> living_runs() {
  std::vector<LivingRun> living;
  const Result<run::RunNumbers> numbers = run::RunNumbers::of_this_user();
  if (!numbers) return living;
  const auto is_listed = [&living](std::uint32_t number) {
    return std::ranges::find(living, number, &LivingRun::number) != living.end();
  };
  // In the order in which a run goes from one to the next: none is missed between two of them.
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  const auto waiting = files ? queued_in(*files) : std::vector<queue::QueuedSubmission>();
  const auto begun = files ? files->numbers(Where::Begun) : std::vector<std::uint32_t>();
  for (const run::RunNumbers::Numbered& each : numbers->all() | std::views::reverse) {
    if (sys::RunLock::holder(each.directory)) living.push_back(look_at(each));
  }
  if (!files) return living;
  const std::string idle = why_nothing_begins(*files);
  for (const std::uint32_t number : begun) {
    if (is_listed(number)) continue;
    const std::string directory = numbers->directory_of(number).value_or("");
    const Result<queue::Submission> submission = files->read(Where::Begun, number);
    const bool is_paused = submission && submission->incomplete;
    // The run has ended, and the queue has not seen that yet.
    const Result<RunOutcome> outcome = outcome_of(directory);
    if (!is_paused && outcome && outcome->stage == RunOutcome::Stage::Over) continue;
    const std::string why = is_paused ? reason_of_pause(*submission->incomplete) : "is starting";
    living.push_back({.number = number,
                      .directory = directory,
                      .is_queued = true,
                      .reason = idle.empty() ? why : idle});
  }
  const auto without_room =
      waiting.empty() ? std::vector<queue::RunWithoutRoom>() : runs_without_room(*files);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (is_listed(waiting[i].number)) continue;
    const auto directory = numbers->directory_of(waiting[i].number);
    living.push_back({.number = waiting[i].number,
                      .directory = directory.value_or(""),
                      .is_queued = true,
                      .reason = reason_of(*files, waiting[i], i, without_room)});
  }
  return living;
}

std::vector<LivingRun> runs_without_start() {
  std::vector<LivingRun> runs;
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  if (!files) return runs;
  const std::int64_t since = sys::unix_milliseconds() - kToldFor.count();
  // After `clean`, a later run may have the directory.
  const auto has_its_directory = [](const queue::EndedSubmission& ended) {
    return number_of_run(ended.run_directory) == ended.number;
  };
  for (const std::uint32_t number : files->numbers(Where::Ended)) {
    const std::optional<queue::EndedSubmission> ended = files->ended(number);
    // Only the end of a run that the queue has given up says why.
    if (ended && !ended->no_start && !ended->why.empty()) {
      std::error_code unknown;
      if (sys::RunLock::holder(ended->run_directory) || !has_its_directory(*ended) ||
          !std::filesystem::exists(run::journal_path(ended->run_directory), unknown)) {
        continue;
      }
      runs.push_back(
          {.number = number,
           .directory = ended->run_directory,
           .is_queued = true,
           .reason = fmt::format(
               "{}: {} resumes it", ended->why,
               text::quoted_command("trainyard run --resume " +
                                    text::shell_word(seen_from_here(ended->run_directory)))),
           .is_given_up = true});
      continue;
    }
    if (!ended || !ended->no_start || ended->no_start == queue::NoStart::Removed) continue;
    if (ended->ended_unix_ms <= since) continue;
    std::error_code ignored;
    const auto is_there = [&ignored](const std::string& path) {
      return std::filesystem::exists(path, ignored);
    };
    // The submission has been cleaned, or has been run since.
    if (ended->no_start != queue::NoStart::DirectoryGone &&
        (!is_there(run::submission_path(ended->run_directory)) ||
         (is_there(run::journal_path(ended->run_directory)) && !ended->runs_again) ||
         !has_its_directory(*ended))) {
      continue;
    }
    runs.push_back({.number = number,
                    .directory = ended->run_directory,
                    .is_queued = true,
                    .reason = reason_of_end(*files, *ended),
                    .no_start = ended->no_start});
  }
  return runs;
}

std::string living_text(const std::vector<LivingRun>& all, int width) {
  const auto has_ended = [](const LivingRun& run) { return run.no_start.has_value(); };
  auto not_shown = std::max<std::ptrdiff_t>(0, std::ranges::count_if(all, has_ended) - kEndedShown);
  std::vector<LivingRun> runs;
  const std::ptrdiff_t more = not_shown;
  for (const LivingRun& run : all) {
    if (has_ended(run) && not_shown-- > 0) continue;
    runs.push_back(run);
  }
  if (runs.empty()) return "you have no active runs on this machine\n";
  std::size_t state = 0;
  int done = 0;
  std::size_t number = std::string("RUN").size();
  for (const LivingRun& run : runs) {
    state = std::max(state, state_of(run).size());
    done = std::max(done, report::columns_of(done_of(run)));
    number = std::max(number, std::to_string(run.number).size());
  }
  // In a narrow terminal, what the tasks do is shortened first, then the directories.
  constexpr int kGaps = 6;
  constexpr int kShortest = 16;
  int directory = 0;
  if (width > 0) {
    int longest = 0;
    for (const LivingRun& run : runs) {
      longest = std::max(longest, report::columns_of(seen_from_here(run.directory)));
    }
    const int room = width - static_cast<int>(number + state) - kGaps;
    done = std::min(done, std::max(kShortest, room - longest));
    directory = std::max(kShortest, room - done);
  }
  std::string text = fmt::format("{:>{}}  {:>{}}  {:<{}}  DIRECTORY\n", "RUN", number, "STATE",
                                 state, "TASKS", done);
  for (const LivingRun& run : runs) {
    const std::string shown = seen_from_here(run.directory);
    text += fmt::format("{:>{}}  {:>{}}  {}  {}\n", run.number, number, state_of(run), state,
                        report::pad_right(report::cut(done_of(run), done), done),
                        width > 0 ? report::cut(shown, directory) : shown);
  }
  if (more > 0) text += fmt::format("and {} more that did not start\n", more);
  if (!std::ranges::any_of(runs, has_ended)) return text;
  text += "runs that did not start are listed for a day";
  const auto cleanable = std::ranges::find_if(runs, [&](const LivingRun& run) {
    return has_ended(run) && time_of_no_start(run.directory);
  });
  if (cleanable != runs.end()) {
    text += fmt::format(": 'trainyard clean {0}' removes run {0}", cleanable->number);
  }
  return text + "\n";
}

std::string living_json(const std::vector<LivingRun>& runs) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const LivingRun& run : runs) {
    nlohmann::ordered_json row;
    row["run_number"] = run.number;
    row["run_directory"] = run.directory;
    row["word"] = state_of(run);
    row["reason"] = nullptr;
    if (!run.reason.empty()) row["reason"] = run.reason;
    row["tasks"] = run.tasks;
    row["finished"] = run.finished;
    row["failed"] = run.failed;
    row["running"] = run.running;
    rows.push_back(std::move(row));
  }
  nlohmann::ordered_json all;
  all["runs"] = std::move(rows);
  return text::readable_json(all);
}

}  // namespace trainyard::cli
