#include "queue/queue_server.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <ranges>
#include <system_error>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/match.h"
#include "base/time.h"
#include "queue/rules/queue_news.h"
#include "run/active_run.h"
#include "run/run_directory.h"
#include "sys/clock.h"
#include "sys/fifo.h"
#include "sys/open_file.h"
#include "sys/pidfd.h"
#include "sys/this_process.h"

namespace trainyard::queue {
namespace {

using SpoolPlace = QueueFiles::Place;

/// A run with a longer job file sends no notification if it does not start.
constexpr Bytes kJobTextMax = mib(8);
/// A run that could not start with less free disk space than this lacked the space.
constexpr std::uintmax_t kSmallestRun = 256U << 10U;
constexpr Duration kOftenEvery{1'000};
/// The interval of looks without an event: a `submit` that was killed before it wrote its word has
/// left a submission, and a deleted queue is not served.
constexpr Duration kSeldomEvery{5'000};

bool is_disk_full(const std::string& run_directory) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(run_directory, error);
  return !error && space.available < kSmallestRun;
}

/// The line of a run's log that says why the run ended without having recorded it.
enum class LogLine : std::uint8_t {
  First,  ///< For a run that was refused before it began: the log has only its mistakes.
  Last,   ///< For all others.
};

/// Nothing where the last line is not our program's own: the run could not write one.
std::optional<std::string> reason_in_log(const std::string& run_directory, LogLine which) {
  std::string text =
      sys::read_end_of_file(run::run_log_path(run_directory), 4096, sys::Links::Refuse)
          .value_or(std::string());
  while (text.ends_with('\n')) text.pop_back();
  std::string line =
      which == LogLine::First ? text.substr(0, text.find('\n')) : text.substr(text.rfind('\n') + 1);
  // The reason is shown behind the name of the program and the run.
  constexpr std::string_view kProgramPrefix = "trainyard: ";
  const bool is_ours = line.starts_with(kProgramPrefix);
  if (is_ours) line.erase(0, kProgramPrefix.size());
  if (line.empty() || (which == LogLine::Last && !is_ours)) return std::nullopt;
  return line;
}

/// The reason why a run that recorded none is set aside.
std::string reason_of_pause(const std::string& run_directory) {
  // The line may be older: the run could write none.
  if (is_disk_full(run_directory)) {
    return fmt::format("the disk of '{}' is full", run_directory);
  }
  return reason_in_log(run_directory, LogLine::Last).value_or("it could not write the reason");
}

/// Our program with these arguments, as a process of the shell that submitted the job.
sys::ProgramToStart program_of(const Submission& submission, std::vector<std::string> arguments) {
  std::vector<std::string> environment = submission.environment;
  environment.push_back(fmt::format("{}=1", kFromQueue));
  return {.arguments = std::move(arguments),
          .environment = std::move(environment),
          .directory = submission.directory,
          .umask = submission.umask,
          .limits = submission.limits};
}

}  // namespace

bool NoStartNews::post(sys::ProgramToStart program, std::string log) {
  if (waiting_.size() >= kWaitingMax) return false;
  waiting_.push_back({.program = std::move(program), .log = std::move(log)});
  start_next();
  return true;
}

void NoStartNews::start_next() {
  while (!waiting_.empty() && posting_.size() < kPostingMax) {
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    const Result<sys::Descriptor> log = sys::open_log(next.log, sys::IfThere::Append);
    // If the directory is gone, no notification is possible.
    if (!log) continue;
    Result<sys::StartedProgram> started = sys::start_program(next.program, *log);
    if (!started) continue;
    const std::int64_t pid = started->pid;
    const int ended = started->ended.get();
    posting_.emplace(pid, std::move(*started));
    loop_.watch_readable(ended, [this, pid] { see_end(pid); });
  }
}

void NoStartNews::see_end(std::int64_t pid) {
  const auto found = posting_.find(pid);
  if (found == posting_.end()) return;
  loop_.unwatch(found->second.ended.get());
  static_cast<void>(sys::end_of_program(pid));
  posting_.erase(found);
  start_next();
}

void ActiveRuns::add(std::uint32_t number, const std::string& run_directory,
                     const QueuedSubmission& submission, sys::StartedProgram started) {
  watch(number, {.run_directory = run_directory,
                 .pid = started.pid,
                 .is_child = true,
                 .ended = std::move(started.ended),
                 .words = std::move(started.words),
                 .submission = submission,
                 .need = RoomNeed{}});
}

bool ActiveRuns::adopt(std::uint32_t number, const std::string& run_directory) {
  const auto holder = run::active_process(run_directory);
  if (!holder) return false;
  watch(number, {.run_directory = run_directory,
                 .pid = *holder,
                 .ended = *holder > 0 ? sys::open_pidfd(*holder) : sys::Descriptor()});
  return true;
}

void ActiveRuns::watch(std::uint32_t number, ActiveRun run) {
  ActiveRun& kept = runs_[number];
  kept = std::move(run);
  if (kept.ended.is_open()) {
    loop_.watch_readable(kept.ended.get(), [this, number] { see_end(number); });
  }
  if (kept.words.is_open()) {
    loop_.watch_readable(kept.words.get(), [this, number] { read_words(number); });
  }
}

void ActiveRuns::read_words(std::uint32_t number) {
  ActiveRun& run = runs_.at(number);
  const std::string said = sys::read_waiting(run.words);
  if (said.empty()) {
    loop_.unwatch(run.words.get());
    run.words.close();
    return;
  }
  run.need = need_in(said);
  listener_.see_words(number);
}

void ActiveRuns::see_end(std::uint32_t number) {
  const auto found = runs_.find(number);
  if (found == runs_.end()) return;
  const ActiveRun run = std::move(found->second);
  runs_.erase(found);
  if (run.ended.is_open()) loop_.unwatch(run.ended.get());
  if (run.words.is_open()) loop_.unwatch(run.words.get());
  listener_.see_end({.number = number,
                     .run_directory = run.run_directory,
                     .process = run.is_child ? sys::end_of_program(run.pid) : std::nullopt});
}

QueueLoad ActiveRuns::load() const {
  QueueLoad load{.at_work = runs_.size()};
  for (const ActiveRun& run : runs_ | std::views::values) {
    if (run.need) load.without_room.push_back({.submission = run.submission, .need = *run.need});
  }
  return load;
}

void ActiveRuns::interrupt() const {
  for (const ActiveRun& run : runs_ | std::views::values) sys::send_signal(run.ended, SIGINT);
}

bool ActiveRuns::poll_unwatched() {
  bool some_unwatched = false;
  for (const auto& [number, run] : runs_) {
    if (run.ended.is_open()) continue;
    some_unwatched = true;
    if (run::active_process(run.run_directory)) continue;
    loop_.post([this, gone = number] { see_end(gone); });
  }
  return some_unwatched;
}

QueueServer::QueueServer(QueueFiles files, sys::RunLock lock, sys::Descriptor words,
                         Program program)
    : files_(std::move(files)),
      lock_(std::move(lock)),
      words_(std::move(words)),
      program_(std::move(program)) {}

void QueueServer::serve() {
  loop_.watch_signals({SIGTERM, SIGINT, SIGHUP, SIGPIPE}, [this](int signal) {
    // Active runs continue. If the machine goes down, the next server resumes them.
    if (signal == SIGTERM || signal == SIGINT) over_ = true;
  });
  loop_.watch_readable(words_.get(), [this] { read_words(); });
  take_up();
  look();
  look_again_later();
  while (!over_) loop_.run_once(std::nullopt);
  loop_.unwatch(words_.get());
}

/// Takes over the runs that an earlier queue began: watches, ends or resumes them.
void QueueServer::take_up() {
  for (const std::uint32_t number : files_.numbers(SpoolPlace::Begun)) {
    const Result<Submission> submission = files_.read(SpoolPlace::Begun, number);
    if (!submission) {
      end(number, "/", refused(submission.error().message));
      continue;
    }
    const std::string& directory = submission->run_directory;
    if (const auto& incomplete = submission->incomplete) {
      setbacks_.take_up(number, *incomplete);
    }
    if (adopt(number, directory)) continue;
    if (submission->incomplete) {
      resume_later(number);
      continue;
    }
    const Result<run::RunOutcome> outcome = program_.outcome_of(directory);
    const Result<bool> runs_again = is_to_run_again(*submission);
    carry_out(number, directory,
              runs_again ? step_for_found_run(outcome ? std::optional(*outcome) : std::nullopt,
                                              *runs_again)
                         : step_after_error(runs_again.error()));
  }
}

void QueueServer::carry_out(std::uint32_t number, const std::string& run_directory, NextStep step) {
  match(
      std::move(step), [](LeaveToNextServer) {}, [&](StartNow how) { start(number, how); },
      [&](SetAside aside) { set_aside(number, run_directory, std::move(aside)); },
      [&](EndedSubmission ended) { end(number, run_directory, std::move(ended)); });
}

/// See ActiveRuns::adopt().
bool QueueServer::adopt(std::uint32_t number, const std::string& run_directory) {
  if (!active_.adopt(number, run_directory)) return false;
  setbacks_.note_start(number);
  return true;
}

/// Keeps an incomplete run, and resumes it later.
void QueueServer::set_aside(std::uint32_t number, const std::string& run_directory, SetAside step) {
  if (step.why.empty()) step.why = reason_of_pause(run_directory);
  auto outcome = setbacks_.note_end(number, step, program_.count_finished(run_directory),
                                    sys::unix_milliseconds());
  if (auto* const over = std::get_if<EndedSubmission>(&outcome)) {
    return end(number, run_directory, std::move(*over));
  }
  program_.note(fmt::format("run {} is incomplete and is resumed later: {}", number, step.why));
  Result<Submission> submission = files_.read(SpoolPlace::Begun, number);
  if (submission) {
    submission->incomplete = std::get<IncompleteRun>(outcome);
    // For `status` and the next server.
    if (const Result<void> noted = files_.note_incomplete(*submission); !noted) {
      program_.note(noted.error().message);
    }
  }
  resume_later(number);
}

void QueueServer::resume_later(std::uint32_t number) {
  loop_.after(setbacks_.pause_left(number, sys::unix_milliseconds()),
              [this, number] { resume(number); });
}

void QueueServer::resume(std::uint32_t number) {
  if (leaves_ || !setbacks_.is_incomplete(number) || active_.contains(number)) return;
  if (files_.is_draining()) {
    // The queue goes down, unless a user starts it again before it has.
    loop_.after(kSeldomEvery, [this, number] { resume(number); });
    return;
  }
  const Result<Submission> submission = files_.read(SpoolPlace::Begun, number);
  if (submission && adopt(number, submission->run_directory)) return;
  start(number, {.had_begun = true});
  look();
}

void QueueServer::read_words() {
  const std::string said = sys::read_waiting(words_);
  for (std::string_view rest = said; !rest.empty();) {
    const std::size_t length = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const std::string_view word = rest.substr(0, length);
    if (word == kDownWord) over_ = over_ || active_.is_empty();
    if (word == kNowWord) {
      leaves_ = true;
      active_.interrupt();
    }
    rest.remove_prefix(length);
  }
  look();
}

void QueueServer::look() {
  looks_often_ = false;
  // The user has removed these runs from the queue.
  setbacks_.forget_if([this](std::uint32_t number) {
    return files_.place_of(number) != SpoolPlace::Begun && !unwritten_ends_.contains(number);
  });
  std::erase_if(unwritten_ends_,
                [this](const auto& each) { return files_.end(each.second).has_value(); });
  const bool some_unwatched = active_.poll_unwatched();
  if (some_unwatched || !unwritten_ends_.empty()) look_often();
  if (leaves_ || files_.is_draining()) {
    over_ = over_ || active_.is_empty();
    return;
  }
  begin_next();
}

void QueueServer::begin_next() {
  const std::vector<std::uint32_t> numbers = files_.numbers(SpoolPlace::Waiting);
  std::erase_if(waiting_, [&numbers](const auto& each) {
    return !std::ranges::binary_search(numbers, each.first);
  });
  for (const std::uint32_t number : numbers) {
    if (waiting_.contains(number) || unwritten_ends_.contains(number)) continue;
    const Result<Submission> read = files_.read(SpoolPlace::Waiting, number);
    // A submission that was taken out meanwhile is not damaged.
    if (!read && files_.place_of(number) != SpoolPlace::Waiting) continue;
    if (!read) {
      end(number, "/", refused(read.error().message));
      continue;
    }
    waiting_[number] = queued(*read);
  }
  std::vector<QueuedSubmission> all;
  all.reserve(waiting_.size());
  for (const auto& [number, each] : waiting_) all.push_back(each);
  const QueueChoice choice = choose_next(std::move(all), active_.load(),
                                         [this](std::uint32_t number) { return fate_of(number); });
  for (const SkippedSubmission& skipped : choice.skip) {
    const Result<Submission> read = files_.read(SpoolPlace::Waiting, skipped.number);
    end(skipped.number, read ? read->run_directory : "/", end_of_skipped(skipped));
    waiting_.erase(skipped.number);
  }
  bool some_ended = !choice.skip.empty();
  for (const std::uint32_t number : choice.begin) {
    if (setbacks_.is_machine_short()) break;
    waiting_.erase(number);
    if (!files_.begin(number)) continue;
    start(number, {});
    some_ended = some_ended || !active_.contains(number);
  }
  // Submissions may need one that was skipped or could not start.
  if (some_ended) loop_.post([this] { look(); });
}

Fate QueueServer::fate_of(std::uint32_t number) {
  const Fate fate = program_.fate_of(files_, number);
  // Nothing reports the end of a run that was started or resumed without the queue.
  const std::optional<SpoolPlace> place = files_.place_of(number);
  const bool is_outside = !place || *place == SpoolPlace::Ended;
  if (fate == Fate::NotEnded && is_outside) look_often();
  return fate;
}

void QueueServer::start(std::uint32_t number, StartNow how) {
  Result<Submission> submission = files_.read(SpoolPlace::Begun, number);
  if (!submission) return end(number, "/", refused(submission.error().message));
  const std::string& directory = submission->run_directory;
  const auto refuse = [&](const Error& error, RunCommand command) {
    carry_out(number, directory, step_after_error(error, command));
  };
  const std::string lost = why_directory_lost(*submission);
  // The user retries the run.
  const bool may_be_active = lost.empty() && submission->runs_again && !how.had_begun;
  if (may_be_active && adopt(number, directory)) return;
  const Result<bool> runs_again = is_to_run_again(*submission);
  if (!runs_again) return refuse(runs_again.error(), RunCommand::Run);
  const auto command =
      command_for({.directory_lost = lost,
                   .had_begun = how.had_begun,
                   .outcome = program_.outcome_of(directory).value_or(run::RunOutcome{}),
                   .was_put_back = submission->runs_again,
                   .needs_ran_again = *runs_again});
  if (const auto* const over = std::get_if<EndedSubmission>(&command)) {
    return end(number, directory, *over);
  }
  const auto way = std::get<RunCommand>(command);
  const std::string log_path = run::run_log_path(directory);
  // A task of the run may have put a pipe there.
  if (sys::reason_to_refuse_at(log_path, {.flags = O_WRONLY})) sys::clear_place(log_path);
  // A run that could not start before reports its mistakes again.
  const Result<sys::Descriptor> log = sys::open_log(
      log_path, way == RunCommand::Resume ? sys::IfThere::Append : sys::IfThere::Empty);
  if (!log) return refuse(log.error(), way);
  Result<sys::StartedProgram> started =
      sys::start_program(program_of(*submission, arguments_of(*submission, way)), *log);
  if (!started) return refuse(started.error(), way);
  active_.add(number, directory, queued(*submission), std::move(*started));
}

void QueueServer::see_words(std::uint32_t number) {
  setbacks_.note_start(number);
  look();
}

void QueueServer::see_end(const ActiveRuns::EndedRun& run) {
  const Result<Submission> submission = files_.read(SpoolPlace::Begun, run.number);
  NextStep step = step_after_process(
      {.process = run.process,
       .outcome = program_.outcome_of(run.run_directory).value_or(run::RunOutcome{}),
       .deaths = setbacks_.deaths_of(run.number),
       .server_stops = leaves_,
       .runs_again = submission && is_to_run_again(*submission).value_or(true),
       .disk_is_full = is_disk_full(run.run_directory),
       .directory_lost = submission ? why_directory_lost(*submission) : ""});
  if (std::holds_alternative<StartNow>(step)) {
    setbacks_.note_death(run.number);
    program_.note(fmt::format("run {} has died, and is resumed", run.number));
  }
  carry_out(run.number, run.run_directory, std::move(step));
  look();
}

/// Whether a submission went back into the queue because it is out of date, and its run has not run
/// again yet.
Result<bool> QueueServer::is_to_run_again(const Submission& submission) const {
  return submission.runs_again ? program_.is_out_of_date(submission.run_directory) : false;
}

/// Writes the end, now or when it can be written. Its time is that of the call.
void QueueServer::end(std::uint32_t number, const std::string& run_directory,
                      EndedSubmission ended) {
  setbacks_.forget(number);
  ended.number = number;
  ended.run_directory = run_directory;
  ended.ended_unix_ms = sys::unix_milliseconds();
  if (ended.no_start == NoStart::Refused && ended.why.empty()) {
    ended.why = reason_in_log(run_directory, LogLine::First).value_or("could not start");
  }
  // A run that has begun ends with this code only if it was not resumed.
  const bool was_not_resumed =
      !ended.no_start && ended.exit_code == static_cast<int>(run::ExitCode::Usage);
  if (was_not_resumed && ended.why.empty()) {
    ended.why = reason_in_log(run_directory, LogLine::Last).value_or("could not start");
  }
  if (is_notified(ended)) notify_of_no_start(number, ended.why);
  const Result<void> written = files_.end(ended);
  if (written) return;
  const bool is_new = unwritten_ends_.emplace(number, std::move(ended)).second;
  if (is_new) program_.note(fmt::format("{}; the queue will retry", written.error().message));
  look_often();
}

/// Sent while the file of the submission exists. Most jobs have no addresses, and cost nothing.
void QueueServer::notify_of_no_start(std::uint32_t number, const std::string& why) {
  const std::optional<SpoolPlace> place = files_.place_of(number);
  if (!place || *place == SpoolPlace::Ended || unwritten_ends_.contains(number)) return;
  Result<Submission> submission = files_.read(*place, number);
  if (!submission) return;
  const std::string& directory = submission->run_directory;
  // Without its directory only the job file itself is left of a submission.
  const bool has_directory = why_directory_lost(*submission).empty();
  const std::string job_file = has_directory ? run::kept_job_path(directory) : submission->job_file;
  const auto text = sys::read_plain_file(job_file, kJobTextMax, run::links_at_job_file(job_file));
  if (!text || !*text) {
    // The job file of a command is in its directory, and has no 'notify'.
    if (!has_directory && job_file == run::kept_job_path(directory)) return;
    program_.note(
        fmt::format("run {}: a 'notify' of its job file had no effect: {}", number,
                    text ? fmt::format("'{}' not found", job_file) : text.error().message));
    return;
  }
  if (!(*text)->contains("notify")) return;
  std::vector<std::string> arguments = arguments_of(*submission, kPostNotStarted, "--run-dir");
  arguments.push_back(fmt::format("--reason={}", why));
  sys::ProgramToStart program = program_of(*submission, std::move(arguments));
  // All paths are absolute, so the process may start in any directory.
  std::error_code ignored;
  if (!std::filesystem::is_directory(program.directory, ignored)) program.directory = "/";
  const bool posted = news_.post(std::move(program),
                                 has_directory ? run::run_log_path(directory) : files_.log_path());
  if (!posted)
    program_.note(fmt::format("run {}: not notified: too many notifications wait", number));
}

void QueueServer::look_often() {
  if (std::exchange(looks_often_, true)) return;
  look_again_later();
}

void QueueServer::look_again_later() {
  loop_.cancel(next_look_);
  next_look_ = loop_.after(looks_often_ ? kOftenEvery : kSeldomEvery, [this] {
    if (!sys::exists(files_.words_path())) over_ = true;
    look();
    look_again_later();
  });
}

}  // namespace trainyard::queue
