#include "queue/queue_files.h"

#include <algorithm>
#include <expected>
#include <filesystem>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "base/bytes.h"
#include "journal/journal_file.h"
#include "journal/options.h"
#include "run/run_directory.h"
#include "run/run_numbers.h"
#include "run/run_outcome.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/open_file.h"
#include "sys/private_directory.h"

namespace trainyard::queue {
namespace {

/// An environment may be 2 MiB, by the kernel.
constexpr Bytes kFileMax = mib(8);
/// A mark contains the name of a job and a time.
constexpr Bytes kMarkMax = kib(16);

using Place = QueueFiles::Place;

std::string on_shared_disk(const std::string& directory) {
  return fmt::format(
      "'{}' is on a disk that machines share, but a queue belongs to one machine: name a directory "
      "on a local disk with '--set yard.state=/var/tmp' (once; it is kept)",
      directory);
}

std::string path_of(const std::string& directory, Place place) {
  switch (place) {
    case Place::Waiting:
      return directory + "/waiting";
    case Place::Begun:
      return directory + "/begun";
    case Place::Ended:
      break;
  }
  return directory + "/ended";
}

std::string path_of(const std::string& directory, Place place, std::uint32_t number) {
  return fmt::format("{}/{}", path_of(directory, place), number);
}

/// The path of an end while one process has it.
std::string aside_of(const std::string& directory, std::uint32_t number) {
  return fmt::format("{}/{}.back", directory, number);
}

std::string draining_path(const std::string& directory) { return directory + "/draining"; }

Result<void> write(const std::string& directory, Place place, std::uint32_t number,
                   const std::string& text) {
  // The file is in the directory of the queue until it is whole, so no process reads a part of it.
  const std::string fresh = fmt::format("{}/{}.{}", directory, number, static_cast<int>(place));
  if (Result<void> written = sys::write_file_atomically(fresh, text); !written) return written;
  std::error_code error;
  std::filesystem::permissions(
      fresh, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, error);
  if (!error) std::filesystem::rename(fresh, path_of(directory, place, number), error);
  if (!error) return {};
  std::error_code ignored;
  std::filesystem::remove(fresh, ignored);
  return std::unexpected(Error{
      fmt::format("cannot write '{}': {}", path_of(directory, place, number), error.message())});
}

/// The submissions that ended behind a run, and whose ends count.
template <class Counts>
std::vector<Submission> behind(const QueueFiles& files, std::uint32_t number, Counts counts) {
  std::vector<Submission> found;
  std::set<std::uint32_t> causes{number};
  // A submission needs only earlier ones, so one pass in the order of their numbers finds all.
  for (const std::uint32_t each : files.numbers(Place::Ended)) {
    const std::optional<EndedSubmission> end = files.ended(each);
    Result<Submission> submission = files.read(Place::Ended, each);
    if (!end || !submission || submission->job_file.empty()) continue;
    if (!counts(*submission, *end)) continue;
    const bool is_behind = std::ranges::any_of(
        submission->needs, [&causes](std::uint32_t needed) { return causes.contains(needed); });
    if (!is_behind) continue;
    causes.insert(each);
    found.push_back(std::move(*submission));
  }
  return found;
}

}  // namespace

SubmissionMark read_mark(const std::string& run_directory) {
  const std::string text =
      sys::read_plain_file(run::submission_path(run_directory), kMarkMax, sys::Links::Refuse)
          .value_or("")
          .value_or("");
  return mark_from(text);
}

std::string why_directory_lost(const Submission& submission) {
  if (!sys::exists(submission.run_directory)) return "its directory was deleted or moved";
  const std::string mark = run::submission_path(submission.run_directory);
  const std::int64_t submitted = read_mark(submission.run_directory).submitted_unix_ms;
  // A power failure may have emptied the mark, which is not that of another submission then.
  const bool may_be_own = submitted == 0 || submitted == submission.submitted_unix_ms;
  if (sys::exists(mark) && may_be_own) return {};
  return fmt::format("its file '{}' was changed or deleted", mark);
}

Result<QueueFiles> QueueFiles::of_this_user() {
  Result<std::string> state = run::state_of_this_user();
  if (!state) return std::unexpected(std::move(state.error()));
  return QueueFiles(*state + "/queue");
}

Result<void> QueueFiles::make(const std::string& elsewhere) const {
  std::error_code error;
  const bool is_link = std::filesystem::is_symlink(directory_, error);
  if (!is_link && !elsewhere.empty() && !sys::exists(directory_)) {
    const std::string place =
        fmt::format("{}/trainyard-queue-{}-{}", elsewhere, sys::host_name(), sys::own_user());
    if (Result<void> made = sys::make_own_directory(place); !made) return made;
    if (Result<void> made =
            sys::make_directories(std::filesystem::path(directory_).parent_path().string());
        !made) {
      return made;
    }
    std::filesystem::create_directory_symlink(place, directory_, error);
  } else {
    // A directory elsewhere may be gone after a reboot.
    const std::string place =
        is_link ? std::filesystem::read_symlink(directory_, error).string() : directory_;
    if (Result<void> made = sys::make_own_directory(place); !made) return made;
  }
  if (journal::log_kind_for(words_path()) == journal::LogKind::Rollback) {
    return std::unexpected(Error{on_shared_disk(directory_)});
  }
  for (const Place place : {Place::Waiting, Place::Begun, Place::Ended}) {
    if (Result<void> made = sys::make_own_directory(path_of(directory_, place)); !made) return made;
  }
  return {};
}

bool QueueFiles::is_draining() const { return sys::exists(draining_path(directory_)); }

Result<void> QueueFiles::set_draining(bool draining) const {
  if (draining) return sys::write_file_atomically(draining_path(directory_), "");
  std::error_code error;
  std::filesystem::remove(draining_path(directory_), error);
  if (!error) return {};
  return std::unexpected(
      Error{fmt::format("cannot remove '{}': {}", draining_path(directory_), error.message())});
}

std::optional<std::int64_t> QueueFiles::server() const { return sys::RunLock::holder(directory_); }

std::vector<std::uint32_t> QueueFiles::numbers(Place place) const {
  std::vector<std::uint32_t> numbers;
  for (const std::string& name : sys::names_in(path_of(directory_, place))) {
    if (const std::optional<std::uint32_t> number = run::read_run_number(name)) {
      numbers.push_back(*number);
    }
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::optional<QueueFiles::Place> QueueFiles::place_of(std::uint32_t number) const {
  // In the order of the states, so that a submission that changes meanwhile is found in its next
  // one.
  for (const Place place : {Place::Waiting, Place::Begun, Place::Ended}) {
    if (sys::exists(path_of(directory_, place, number))) return place;
  }
  return std::nullopt;
}

Result<Submission> QueueFiles::read(Place place, std::uint32_t number) const {
  const std::string path = path_of(directory_, place, number);
  const Result<std::optional<std::string>> read = sys::read_plain_file(path, kFileMax);
  if (!read) return std::unexpected(read.error());
  const std::optional<std::string>& text = *read;
  if (!text) return std::unexpected(Error{fmt::format("'{}' not found", path)});
  Result<Submission> submission = submission_from(*text);
  if (!submission) return std::unexpected(Error(submission.error()).in(path));
  return submission;
}

std::optional<EndedSubmission> QueueFiles::ended(std::uint32_t number) const {
  const std::string text = sys::read_plain_file(path_of(directory_, Place::Ended, number), kFileMax)
                               .value_or("")
                               .value_or("");
  Result<EndedSubmission> ended = ended_from(text);
  if (!ended) return std::nullopt;
  return std::move(*ended);
}

Result<void> QueueFiles::add(const Submission& submission) const {
  if (numbers(Place::Waiting).size() >= kWaitingMax) {
    return std::unexpected(
        Error{fmt::format("your queue is full, with {} submissions: use a matrix, which is one "
                          "submission, or try again later",
                          kWaitingMax)});
  }
  return write(directory_, Place::Waiting, submission.number, to_text(submission));
}

bool QueueFiles::begin(std::uint32_t number) const {
  std::error_code error;
  std::filesystem::rename(path_of(directory_, Place::Waiting, number),
                          path_of(directory_, Place::Begun, number), error);
  return !error;
}

Result<void> QueueFiles::note_incomplete(const Submission& submission) const {
  if (place_of(submission.number) != Place::Begun) return {};
  return write(directory_, Place::Begun, submission.number, to_text(submission));
}

Result<void> QueueFiles::end(const EndedSubmission& ended) const {
  const std::optional<Place> place = place_of(ended.number);
  const auto kept = place ? read(*place, ended.number) : std::unexpected(Error{""});
  EndedSubmission record = ended;
  record.runs_again = kept && kept->runs_again && ended.no_start;
  const std::string text = kept ? to_text(record, *kept) : to_text(record);
  if (Result<void> written = write(directory_, Place::Ended, ended.number, text); !written)
    return written;
  std::error_code ignored;
  std::filesystem::remove(path_of(directory_, Place::Waiting, ended.number), ignored);
  std::filesystem::remove(path_of(directory_, Place::Begun, ended.number), ignored);
  const std::vector<std::uint32_t> all = numbers(Place::Ended);
  for (std::size_t i = 0; i + kEndedMax < all.size(); ++i) {
    std::filesystem::remove(path_of(directory_, Place::Ended, all[i]), ignored);
  }
  return {};
}

bool QueueFiles::cancel(std::uint32_t number) const {
  const Result<Submission> submission = read(Place::Waiting, number);
  std::error_code error;
  // The process that renames the file first owns it.
  std::filesystem::rename(path_of(directory_, Place::Waiting, number),
                          path_of(directory_, Place::Ended, number), error);
  if (error) return false;
  EndedSubmission removed{.number = number,
                          .run_directory = submission ? submission->run_directory : "/",
                          .ended_unix_ms = sys::unix_milliseconds()};
  if (submission && submission->runs_again) {
    removed.is_resumed = true;
  } else {
    removed.exit_code = static_cast<int>(run::ExitCode::TaskFailed);
    removed.no_start = NoStart::Removed;
    removed.why = kRemovedByUser;
  }
  // end() removes its environment.
  return end(removed).has_value();
}

Result<bool> QueueFiles::put_back(const Submission& submission) const {
  const std::string ended = path_of(directory_, Place::Ended, submission.number);
  const std::string aside = aside_of(directory_, submission.number);
  std::error_code error;
  // The process that renames it first puts it back.
  std::filesystem::rename(ended, aside, error);
  if (error) return false;
  Result<void> added = add(submission);
  if (!added) {
    std::filesystem::rename(aside, ended, error);
    return std::unexpected(std::move(added.error()));
  }
  std::filesystem::remove(aside, error);
  return true;
}

void QueueFiles::forget_end(std::uint32_t number) const {
  const std::optional<EndedSubmission> known = ended(number);
  const Result<Submission> kept = read(Place::Ended, number);
  std::error_code error;
  // A process that puts the submission back meanwhile has taken the file: it waits again.
  std::filesystem::rename(path_of(directory_, Place::Ended, number), aside_of(directory_, number),
                          error);
  if (error) return;
  if (known) {
    const EndedSubmission resumed{.number = number,
                                  .run_directory = known->run_directory,
                                  .ended_unix_ms = known->ended_unix_ms,
                                  .is_resumed = true};
    const std::string text = kept ? to_text(resumed, *kept) : to_text(resumed);
    static_cast<void>(write(directory_, Place::Ended, number, text));
  }
  std::filesystem::remove(aside_of(directory_, number), error);
}

bool is_in(const QueueFiles& files, const std::string& elsewhere) {
  std::error_code ignored;
  const std::filesystem::path place = std::filesystem::canonical(files.directory(), ignored);
  return std::filesystem::equivalent(place.parent_path(), elsewhere, ignored);
}

std::vector<Submission> skipped_because_of(const QueueFiles& files, std::uint32_t number) {
  return behind(files, number, [](const Submission&, const EndedSubmission& end) {
    return end.no_start == NoStart::Skipped;
  });
}

std::vector<Submission> ended_behind(const QueueFiles& files, std::uint32_t number) {
  return behind(files, number, [](const Submission& submission, const EndedSubmission& end) {
    // Nothing of an alarm is out of date once it has rung.
    const bool is_alarm = submission.run_if == model::RunIf::Failure;
    return end.no_start == NoStart::Skipped || (has_begun(end) && !is_alarm);
  });
}

std::vector<Submission> begun_behind(const QueueFiles& files, std::uint32_t number) {
  std::vector<Submission> begun;
  for (const Place place : {Place::Begun, Place::Ended}) {
    for (const std::uint32_t each : files.numbers(place)) {
      Result<Submission> submission = files.read(place, each);
      if (!submission || std::ranges::count(submission->needs, number) == 0) continue;
      const std::optional<EndedSubmission> end = files.ended(each);
      if (!end || has_begun(*end)) begun.push_back(std::move(*submission));
    }
  }
  std::ranges::sort(begun, {}, &Submission::number);
  return begun;
}

}  // namespace trainyard::queue
