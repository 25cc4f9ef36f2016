#include "cli/queue_return.h"

#include <algorithm>
#include <expected>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "app/retry_plan.h"
#include "base/list_text.h"
#include "cli/console.h"
#include "cli/queue_start.h"
#include "cli/queued_runs.h"
#include "queue/queue_server.h"
#include "run/begun.h"
#include "sys/fifo.h"
#include "sys/files.h"

namespace trainyard::cli {
namespace {

/// Whether the directory of a run was deleted or moved, or belongs to a later run: then it cannot
/// be retried.
bool is_directory_gone(std::uint32_t number) {
  const std::optional<std::string> directory = directory_of_run(number);
  return !directory || number_of_run(*directory) != number || !sys::exists(*directory);
}

/// Whether the directory of a submission still is its own, and contains its run.
bool has_run(const queue::Submission& submission) {
  return number_of_run(submission.run_directory) == submission.number &&
         run::has_begun(submission.run_directory).value_or(false);
}

/// Reads the facts from the disk at each question, but has no ReturnFacts::needs_ran_again, which
/// only queue::choose_returns() asks.
queue::ReturnFacts facts_of(const queue::QueueFiles& files) {
  using queue::Submission;
  return {.fate_of = [&files](std::uint32_t number) { return fate_of_run(files, number); },
          .has_run = has_run,
          .needs_ran_again = {},
          .has_no_start =
              [](const Submission& it) { return time_of_no_start(it.run_directory).has_value(); },
          .is_directory_gone = is_directory_gone,
          .without_start = [&files](std::uint32_t number) -> std::optional<Submission> {
            const auto end = files.ended(number);
            Result<Submission> kept = files.read(queue::QueueFiles::Place::Ended, number);
            if (!kept || !end || !end->no_start) return std::nullopt;
            return std::move(*kept);
          },
          .is_in_cascade =
              [&files](std::uint32_t number) {
                const auto end = files.ended(number);
                return !end || !end->no_start || end->no_start == queue::NoStart::Skipped;
              },
          .resume_command = resume_command};
}

}  // namespace

Result<void> check_needs(const queue::QueueFiles& files, const queue::Submission& submission) {
  return queue::check_needs(submission, facts_of(files));
}

Result<QueueReturn> QueueReturn::behind(const std::string& run_directory, Takes takes) {
  QueueReturn returns;
  const std::optional<std::uint32_t> number = number_of_run(run_directory);
  if (!number) return returns;
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  if (!files) return std::unexpected(files.error());
  queue::ReturnFacts facts = facts_of(*files);
  // Set where the machine is short of something, and the answer is not known.
  std::optional<Error> error;
  facts.needs_ran_again = [&error](const queue::Submission& it) {
    const Result<std::vector<std::uint32_t>> again = needs_run_again(it.run_directory);
    if (!again) error = again.error();
    return again && !again->empty();
  };
  returns.returns_ =
      queue::choose_returns({.number = *number, .runs_again = takes == Takes::Begun},
                            takes == Takes::Skipped ? queue::skipped_because_of(*files, *number)
                                                    : queue::ended_behind(*files, *number),
                            facts);
  if (error) return std::unexpected(*std::move(error));
  for (queue::Submission& submission : returns.returns_.submissions) {
    Result<queue::Submission> with_shell = with_own_shell(std::move(submission));
    if (!with_shell) return std::unexpected(std::move(with_shell.error()));
    submission = *std::move(with_shell);
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
  if (const Result<void> possible = check_needs(*files, *kept); !possible) {
    return std::unexpected(possible.error());
  }
  kept = with_own_shell(*std::move(kept));
  if (!kept) return std::unexpected(std::move(kept.error()));
  Result<QueueReturn> returns = cascade ? behind(run_directory, Takes::Begun) : QueueReturn();
  if (returns) returns->returns_.submissions.insert(returns->returns_.submissions.begin(), *kept);
  return returns;
}

std::vector<std::uint32_t> QueueReturn::numbers() const {
  std::vector<std::uint32_t> numbers;
  std::ranges::transform(returns_.submissions, std::back_inserter(numbers),
                         &queue::Submission::number);
  return numbers;
}

std::string QueueReturn::shown() const {
  std::string text;
  for (const queue::Submission& submission : returns_.submissions) {
    text +=
        fmt::format("{} would go back into your queue{}\n", name_of_run(submission.run_directory),
                    submission.runs_again ? ", and all of its tasks run again" : "");
  }
  for (const Error& refused : returns_.refused) text += refused.message + '\n';
  return text;
}

Result<void> QueueReturn::serve_queue() const {
  if (returns_.submissions.empty()) return {};
  const Result<queue::QueueFiles> files = open_queue({});
  if (!files) return std::unexpected(files.error());
  serve_submissions(*files, returns_.submissions.size());
  return {};
}

ExitCode QueueReturn::put_back() const {
  if (is_empty()) return ExitCode::Success;
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  if (!files) return fail(files.error(), ExitCode::TaskFailed);
  ExitCode code = ExitCode::Success;
  for (const Error& refused : returns_.refused) code = fail(refused, ExitCode::TaskFailed);
  for (const queue::Submission& submission : returns_.submissions) {
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
  for (const queue::Submission& submission : queue::begun_behind(*files, *number)) {
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

ExitCode retry_submission(const app::RetryRequest& request, const TasksOfRun& selection) {
  const bool is_waiting = waits_in_queue(selection.run);
  const Result<void> alone = app::check_no_tasks(request, selection, is_waiting, run_facts());
  if (!alone) return fail(alone.error());
  const Result<QueueReturn> returns =
      is_waiting ? QueueReturn::behind(selection.run, QueueReturn::Takes::Begun)
                 : QueueReturn::itself(selection.run, request.cascade);
  if (!returns) return fail(returns.error());
  if (returns->is_empty()) {
    return fail(fmt::format(
        "nothing to retry: {} is in your queue, and no submission was skipped because of it",
        selection.name));
  }
  if (!request.cascade) note_skipped(selection.run);
  note_out_of_date(selection.run, *returns);
  if (request.dry_run) return answer(returns->shown());
  if (const Result<void> served = returns->serve_queue(); !served) return fail(served.error());
  return returns->put_back();
}

}  // namespace trainyard::cli
