#include "queue/rules/next_step.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "run/run_directory.h"

namespace trainyard::queue {
namespace {

using run::ExitCode;
using Stage = run::RunOutcome::Stage;

bool is(int code, ExitCode other) { return code == static_cast<int>(other); }

/// Whether a run has ended with this code for a cause that may be over later. A run that waits for
/// the user, such as one whose repeat has no result to compare, is not resumed.
bool is_incomplete(const run::RunOutcome& outcome, int code) {
  return is(code, ExitCode::NotDone) && !outcome.why.starts_with(run::kNotAllDone);
}

/// The end of a submission whose run directory is lost: nothing can start or resume its run.
EndedSubmission without_directory(const std::string& lost, ExitCode code,
                                  std::optional<NoStart> no_start = {}) {
  return {
      .exit_code = static_cast<int>(code), .no_start = no_start, .why = lost + ": submit it again"};
}

void count_end(IncompleteRun& run, int finished, std::int64_t unix_ms) {
  constexpr std::int64_t kFirstPauseMs = 60'000;
  constexpr std::int64_t kLongestPauseMs = 30 * kFirstPauseMs;
  const bool got_on = run.ends == 0 || finished > run.finished;
  run.ends = got_on ? 1 : run.ends + 1;
  run.finished = finished;
  std::int64_t pause = kFirstPauseMs;
  for (int end = 1; end < run.ends && pause < kLongestPauseMs; ++end) pause *= 2;
  run.resumes_unix_ms = unix_ms + std::min(pause, kLongestPauseMs);
}

}  // namespace

NextStep step_for_found_run(const std::optional<run::RunOutcome>& outcome, bool runs_again) {
  if (!outcome || outcome->stage != Stage::Over || runs_again) return StartNow{.had_begun = true};
  const int code = static_cast<int>(outcome->code);
  if (is_incomplete(*outcome, code)) return SetAside{.why = outcome->why};
  return EndedSubmission{.exit_code = code};
}

NextStep step_after_process(const ProcessEnd& end) {
  const bool died = end.outcome.stage == Stage::Died;
  const bool was_killed = end.process ? end.process->signal != 0 : died;
  if (was_killed && end.server_stops) return LeaveToNextServer{};
  if (was_killed && end.deaths < kDeathsMax) return StartNow{.had_begun = true};
  if (was_killed) return SetAside{.why = fmt::format("it was killed {} times", end.deaths + 1)};
  const int code = end.process ? end.process->exit_code : static_cast<int>(end.outcome.code);
  // A run that the server interrupted has not ended.
  const bool was_interrupted = is(code, ExitCode::Interrupted) || is(code, ExitCode::Terminated);
  if (end.server_stops && was_interrupted) return LeaveToNextServer{};
  // A task may have moved the directory of its run.
  if (!end.directory_lost.empty() && is(code, ExitCode::NotDone)) {
    return without_directory(end.directory_lost, ExitCode::NotDone);
  }
  const bool is_refused = is(code, ExitCode::Usage) || is(code, ExitCode::NotDone);
  const bool did_not_start = end.outcome.stage == Stage::NotBegun || (is_refused && end.runs_again);
  if (did_not_start) {
    if (is(code, ExitCode::NotDone) || end.disk_is_full) return SetAside{.began = false};
    return EndedSubmission{.exit_code = code, .no_start = NoStart::Refused};
  }
  if (is_incomplete(end.outcome, code)) return SetAside{.why = died ? "" : end.outcome.why};
  return EndedSubmission{.exit_code = code};
}

EndedSubmission refused(std::string why) {
  return {.exit_code = static_cast<int>(ExitCode::Usage),
          .no_start = NoStart::Refused,
          .why = std::move(why)};
}

NextStep step_after_error(const Error& error, RunCommand command) {
  if (error.of_machine) return SetAside{.began = false, .why = error.message};
  EndedSubmission end = refused(error.message);
  if (command == RunCommand::Resume) end.no_start.reset();
  return end;
}

EndedSubmission end_of_skipped(const SkippedSubmission& skipped) {
  const ExitCode code = skipped.not_needed ? ExitCode::Success : ExitCode::TaskFailed;
  return {.exit_code = static_cast<int>(code),
          .no_start = skipped.not_needed ? NoStart::NotNeeded : NoStart::Skipped,
          .why = skipped.why};
}

bool is_notified(const EndedSubmission& end) {
  return end.no_start && end.no_start != NoStart::NotNeeded;
}

std::variant<RunCommand, EndedSubmission> command_for(const RunToStart& run) {
  if (!run.directory_lost.empty()) {
    return without_directory(run.directory_lost, ExitCode::Usage, NoStart::DirectoryGone);
  }
  // A death lost nothing of what was to run again, and only a resume may follow it.
  if (run.was_put_back && run.needs_ran_again && run.outcome.stage != Stage::Died) {
    return RunCommand::RetryAll;
  }
  // The user has retried the run meanwhile.
  if (run.was_put_back && !run.had_begun && run.outcome.stage == Stage::Over) {
    return EndedSubmission{.exit_code = static_cast<int>(run.outcome.code)};
  }
  const bool resumes = run.outcome.stage != Stage::NotBegun && (run.had_begun || run.was_put_back);
  return resumes ? RunCommand::Resume : RunCommand::Run;
}

std::vector<std::string> arguments_of(const Submission& submission, RunCommand command) {
  if (command == RunCommand::RetryAll) return {"retry", submission.run_directory, "--cascade"};
  return arguments_of(submission, "run", command == RunCommand::Resume ? "--resume" : "--run-dir");
}

std::vector<std::string> arguments_of(const Submission& submission, std::string_view command,
                                      std::string_view directory_option) {
  std::vector<std::string> arguments{std::string(command), submission.job_file,
                                     std::string(directory_option), submission.run_directory};
  if (!submission.config_file.empty()) {
    arguments.insert(arguments.end(), {"--config", submission.config_file});
  }
  for (const std::string& setting : submission.settings) {
    arguments.insert(arguments.end(), {"--set", setting});
  }
  return arguments;
}

void Setbacks::take_up(std::uint32_t number, const IncompleteRun& run) {
  incomplete_[number] = run;
}

void Setbacks::note_death(std::uint32_t number) { ++deaths_[number]; }

int Setbacks::deaths_of(std::uint32_t number) const {
  const auto found = deaths_.find(number);
  return found == deaths_.end() ? 0 : found->second;
}

std::variant<IncompleteRun, EndedSubmission> Setbacks::note_end(std::uint32_t number,
                                                                const SetAside& step, int finished,
                                                                std::int64_t unix_ms) {
  deaths_.erase(number);
  IncompleteRun& run = incomplete_[number];
  count_end(run, finished, unix_ms);
  run.began = step.began;
  run.why = step.why;
  // A run that could not start waits until it can.
  if (!run.began || run.ends < kIncompleteEndsMax) return run;
  return EndedSubmission{
      .exit_code = static_cast<int>(run::ExitCode::NotDone),
      .why = fmt::format("ended incomplete {} times in a row ({})", run.ends, run.why)};
}

void Setbacks::note_start(std::uint32_t number) {
  const auto found = incomplete_.find(number);
  if (found != incomplete_.end()) found->second.began = true;
}

void Setbacks::forget(std::uint32_t number) {
  deaths_.erase(number);
  incomplete_.erase(number);
}

void Setbacks::forget_if(const std::function<bool(std::uint32_t number)>& is_gone) {
  std::erase_if(incomplete_, [&is_gone](const auto& each) { return is_gone(each.first); });
}

bool Setbacks::is_incomplete(std::uint32_t number) const { return incomplete_.contains(number); }

Duration Setbacks::pause_left(std::uint32_t number, std::int64_t unix_ms) const {
  const std::int64_t left = incomplete_.at(number).resumes_unix_ms - unix_ms;
  return Duration{std::max<std::int64_t>(left, 0)};
}

bool Setbacks::is_machine_short() const {
  return std::ranges::any_of(incomplete_ | std::views::values,
                             [](const IncompleteRun& run) { return !run.began; });
}

}  // namespace trainyard::queue
