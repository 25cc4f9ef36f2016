#include "cli/queue_return.h"

#include <algorithm>
#include <expected>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "cli/console.h"
#include "cli/queue_start.h"
#include "cli/queued_runs.h"
#include "queue/queue_choice.h"
#include "queue/queue_server.h"
#include "run/begun.h"
#include "sys/fifo.h"
#include "text/shell_quote.h"
#include "text/task_pattern.h"

namespace trainyard::cli {
namespace {

/// The skip that the queue would decide for a submission that is put back; nothing if none.
std::optional<queue::SkippedSubmission> skip_of(const queue::Submission& submission,
                                                const queue::FateOf& fate_of) {
  queue::QueueChoice choice = queue::choose_next({queue::queued(submission)}, {}, fate_of);
  if (choice.skip.empty()) return std::nullopt;
  return std::move(choice.skip.front());
}

/// Whether the directory of a run was deleted or moved, or belongs to a later run: then it cannot
/// be retried.
bool is_directory_gone(std::uint32_t number) {
  const std::optional<std::string> directory = directory_of_run(number);
  std::error_code ignored;
  return !directory || number_of_run(*directory) != number ||
         !std::filesystem::exists(*directory, ignored);
}

/// Whether the directory of a submission still is its own, and contains its run.
bool has_run(const queue::Submission& submission) {
  return number_of_run(submission.run_directory) == submission.number &&
         run::has_begun(submission.run_directory).value_or(false);
}

/// Refuses a submission that the queue would skip again at once, and says what would run it.
Result<void> check_needs(const queue::QueueFiles& files, const queue::Submission& submission,
                         const queue::FateOf& fate_of) {
  const auto skipped = skip_of(submission, fate_of);
  if (!skipped) return {};
  if (skipped->needed == 0) {
    return std::unexpected(Error{fmt::format("run {}: {}", submission.number, skipped->why)});
  }
  const std::string why = fmt::format("run {} {}", submission.number, skipped->why);
  // The run that it needs may have been skipped itself: then the one to retry comes before that.
  std::vector<std::uint32_t> runs{submission.number};
  for (std::uint32_t needed = skipped->needed; needed != 0;) {
    runs.push_back(needed);
    if (is_directory_gone(needed)) {
      return std::unexpected(Error{fmt::format(
          "{}, and the directory of run {} is gone: submit {} again", why, needed,
          runs.size() == 2 ? "both" : "runs " + ranges_of({runs.rbegin(), runs.rend()}))});
    }
    const Result<queue::Submission> kept = files.read(queue::QueueFiles::Place::Ended, needed);
    const auto end = files.ended(needed);
    const bool has_started = !kept || !end || !end->no_start;
    const auto behind = has_started ? std::nullopt : skip_of(*kept, fate_of);
    needed = behind ? behind->needed : 0;
  }
  return std::unexpected(Error{fmt::format("{}: 'trainyard retry {} --cascade' runs {} again", why,
                                           runs.back(), runs.size() == 2 ? "both" : "them")});
}

}  // namespace

Result<void> QueueReturn::add(queue::Submission submission) {
  Result<queue::Submission> with_shell = with_own_shell(std::move(submission));
  if (!with_shell) return std::unexpected(std::move(with_shell.error()));
  submissions_.push_back(std::move(*with_shell));
  return {};
}

Result<void> QueueReturn::add_behind(std::uint32_t number, const queue::QueueFiles& files,
                                     Takes takes) {
  const auto goes_back = [this](std::uint32_t needed) {
    return std::ranges::find(submissions_, needed, &queue::Submission::number) !=
           submissions_.end();
  };
  const auto fate_of = [&](std::uint32_t needed) {
    const bool runs_again = needed == number || goes_back(needed);
    return runs_again ? queue::Fate::NotEnded : fate_of_run(files, needed);
  };
  const auto runs_again = [&](std::uint32_t needed) {
    return goes_back(needed) || (needed == number && takes == Takes::Begun);
  };
  for (queue::Submission& submission :
       takes == Takes::Skipped ? files.skipped_because_of(number) : files.ended_behind(number)) {
    submission.runs_again = has_run(submission);
    const bool is_out_of_date =
        submission.runs_again && (std::ranges::any_of(submission.needs, runs_again) ||
                                  !needs_run_again(submission.run_directory).empty());
    // Its directory was cleaned, or has been run in since.
    if (!is_out_of_date && !time_of_no_start(submission.run_directory)) continue;
    // Another run that it needs did not succeed either.
    if (Result<void> possible = check_needs(files, submission, fate_of); !possible) {
      refused_.push_back(std::move(possible.error()));
      continue;
    }
    if (Result<void> added = add(std::move(submission)); !added) return added;
  }
  return {};
}

Result<QueueReturn> QueueReturn::behind(const std::string& run_directory, Takes takes) {
  QueueReturn returns;
  const std::optional<std::uint32_t> number = number_of_run(run_directory);
  if (!number) return returns;
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  if (!files) return std::unexpected(files.error());
  if (Result<void> added = returns.add_behind(*number, *files, takes); !added) {
    return std::unexpected(std::move(added.error()));
  }
  return returns;
}

Result<QueueReturn> QueueReturn::itself(const std::string& run_directory, bool cascade) {
  using Place = queue::QueueFiles::Place;
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  if (!files) return std::unexpected(files.error());
  const std::optional<std::uint32_t> number = number_of_run(run_directory);
  Result<queue::Submission> kept =
      number ? files->read(Place::Ended, *number) : std::unexpected(Error{"it has no number"});
  if (!kept || kept->job_file.empty()) {
    return std::unexpected(
        Error{fmt::format("your queue no longer has what was submitted as {}: submit it again",
                          name_of_run(run_directory))});
  }
  const auto fate_of = [&files](std::uint32_t needed) { return fate_of_run(*files, needed); };
  if (const Result<void> possible = check_needs(*files, *kept, fate_of); !possible) {
    return std::unexpected(possible.error());
  }
  QueueReturn returns;
  Result<void> added = returns.add(std::move(*kept));
  if (added && cascade) added = returns.add_behind(*number, *files, Takes::Begun);
  if (!added) return std::unexpected(std::move(added.error()));
  return returns;
}

std::vector<std::uint32_t> QueueReturn::numbers() const {
  std::vector<std::uint32_t> numbers;
  for (const queue::Submission& submission : submissions_) numbers.push_back(submission.number);
  return numbers;
}

std::string QueueReturn::shown() const {
  std::string text;
  for (const queue::Submission& submission : submissions_) {
    text +=
        fmt::format("{} would go back into your queue{}\n", name_of_run(submission.run_directory),
                    submission.runs_again ? ", and all of its tasks run again" : "");
  }
  for (const Error& refused : refused_) text += refused.message + '\n';
  return text;
}

Result<void> QueueReturn::serve_queue() const {
  if (submissions_.empty()) return {};
  const Result<queue::QueueFiles> files = open_queue({});
  if (!files) return std::unexpected(files.error());
  serve_submissions(*files, submissions_.size());
  return {};
}

ExitCode QueueReturn::put_back() const {
  if (is_empty()) return ExitCode::Success;
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  if (!files) return fail(files.error(), ExitCode::TaskFailed);
  ExitCode code = ExitCode::Success;
  for (const Error& refused : refused_) code = fail(refused, ExitCode::TaskFailed);
  for (const queue::Submission& submission : submissions_) {
    const Result<bool> is_back = files->put_back(submission);
    const std::string run = fmt::format("run {}", submission.number);
    if (!is_back) {
      code = fail(Error(is_back.error()).in(run), ExitCode::TaskFailed);
    } else if (!*is_back) {
      code = fail(run + " was put back into your queue by another command", ExitCode::TaskFailed);
    } else if (!print(run + " is back in your queue\n")) {
      code = ExitCode::TaskFailed;
    }
  }
  // A queue that is down looks when it is up.
  static_cast<void>(sys::tell_fifo(files->words_path(), queue::kLookWord));
  return code;
}

void note_skipped(const std::string& run_directory) {
  const Result<QueueReturn> skipped =
      QueueReturn::behind(run_directory, QueueReturn::Takes::Skipped);
  const auto numbers = skipped ? skipped->numbers() : std::vector<std::uint32_t>();
  if (numbers.empty()) return;
  const bool is_one = numbers.size() == 1;
  note(fmt::format(
      "{0} {1} skipped because of run {2}: 'trainyard retry {2} --cascade' puts {3} "
      "back into your queue",
      is_one ? fmt::format("run {}", numbers.front()) : "runs " + ranges_of(numbers),
      is_one ? "was" : "were", number_of_run(run_directory).value_or(0), is_one ? "it" : "them"));
}

void note_out_of_date(const std::string& run_directory, const QueueReturn& going_back) {
  const std::optional<std::uint32_t> number = number_of_run(run_directory);
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  if (!number || !files) return;
  const std::vector<std::uint32_t> back = going_back.numbers();
  std::vector<std::uint32_t> numbers;
  bool have_ended = true;
  for (const queue::Submission& submission : files->begun_behind(*number)) {
    // Nothing of an alarm is out of date once it has rung.
    if (submission.run_if == model::RunIf::Failure) continue;
    if (std::ranges::find(back, submission.number) != back.end()) continue;
    // The run may have been cleaned, and its directory may be that of another run.
    if (!has_run(submission)) continue;
    numbers.push_back(submission.number);
    have_ended = have_ended && files->ended(submission.number);
  }
  if (numbers.empty()) return;
  const bool is_one = numbers.size() == 1;
  note(
      fmt::format("{} {} run {} and started before this retry: {} out of date once tasks run "
                  "again; {}'trainyard retry {} --cascade' runs {} again",
                  is_one ? fmt::format("run {}", numbers.front()) : "runs " + ranges_of(numbers),
                  is_one ? "needs" : "need", *number, is_one ? "it is" : "they are",
                  have_ended ? ""
                  : is_one   ? "when it has ended, "
                             : "when they have ended, ",
                  *number, is_one ? "it" : "them"));
}

ExitCode retry_submission(const RetryOptions& options, const TasksOfRun& selection) {
  const bool is_alone = selection.is_all() && !options.changed && !options.other_code &&
                        !options.fresh && options.memory.empty() && options.gpu_memory.empty() &&
                        options.time_limit.empty();
  const std::string name = name_of_run(selection.run);
  if (!is_alone) {
    // A word that is not a run is a task of the latest run.
    for (const text::TaskPattern& pattern : selection.patterns) {
      const std::optional<Error> unknown = app::unknown_number(pattern.text(), run_facts());
      if (unknown) return fail(*unknown);
    }
    return fail(
        fmt::format("{} has not started and has no tasks yet: 'trainyard retry {}' puts it back "
                    "into your queue",
                    name, text::shell_word(seen_from_here(selection.run))));
  }
  const Result<QueueReturn> returns =
      waits_in_queue(selection.run) ? QueueReturn::behind(selection.run, QueueReturn::Takes::Begun)
                                    : QueueReturn::itself(selection.run, options.cascade);
  if (!returns) return fail(returns.error());
  if (returns->is_empty()) {
    return fail(fmt::format(
        "nothing to retry: {} is in your queue, and no submission was skipped because of it",
        name));
  }
  if (!options.cascade) note_skipped(selection.run);
  note_out_of_date(selection.run, *returns);
  if (options.dry_run) return answer(returns->shown());
  if (const Result<void> served = returns->serve_queue(); !served) return fail(served.error());
  return returns->put_back();
}

}  // namespace trainyard::cli
