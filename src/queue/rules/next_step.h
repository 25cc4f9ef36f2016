// The next step of the queue with a submission that has begun: start or resume its run, set it
// aside, or end it; and the pauses after setbacks. Pure: the server (queue/queue_server.h) reads
// the facts, and acts.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "queue/rules/queue_choice.h"
#include "queue/rules/submission.h"
#include "run/run_outcome.h"
#include "sys/start_program.h"

namespace trainyard::queue {

/// The number of times that the queue resumes a run at once after its process was killed.
constexpr int kDeathsMax = 3;

/// The submission stays as it is: the next server of the queue resumes its run.
struct LeaveToNextServer {
  friend bool operator==(const LeaveToNextServer&, const LeaveToNextServer&) = default;
};

/// Starts the run of the submission now, see command_for().
struct StartNow {
  bool had_begun = false;  ///< The submission was begun before this server took it or started it.

  friend bool operator==(const StartNow&, const StartNow&) = default;
};

/// Resumes the run after a pause, as something other than a task is to blame for its end.
struct SetAside {
  bool began = true;  ///< See IncompleteRun.
  /// The reason, for people. Empty if the run printed it and recorded none: it could not start, or
  /// its journal could not be written.
  std::string why = {};

  friend bool operator==(const SetAside&, const SetAside&) = default;
};

/// An EndedSubmission ends the submission; the server adds its number, directory and time. Its
/// `why` may be empty as that of SetAside.
using NextStep = std::variant<LeaveToNextServer, StartNow, SetAside, EndedSubmission>;

/// The step for a submission that an earlier server left begun, and whose run is not active. An
/// outcome that cannot be read is nothing. `runs_again`: the run is out of date and went back into
/// the queue for that.
NextStep step_for_found_run(const std::optional<run::RunOutcome>& outcome, bool runs_again);

/// The end of the process of a run.
struct ProcessEnd {
  std::optional<sys::ProgramEnd> process = std::nullopt;  ///< Nothing: it was no child.
  run::RunOutcome outcome;
  int deaths = 0;              ///< Setbacks::deaths_of().
  bool server_stops = false;   ///< The server has interrupted its runs, as it exits.
  bool runs_again = false;     ///< As of step_for_found_run().
  bool disk_is_full = false;   ///< The disk of the run directory.
  std::string directory_lost;  ///< See why_directory_lost().
};

NextStep step_after_process(const ProcessEnd& end);

/// The end of a submission that can never start, for this reason.
EndedSubmission refused(std::string why);

/// The command with which a run starts.
enum class RunCommand : std::uint8_t { Run, Resume, RetryAll };

/// The step for a submission whose run this command cannot start now. A run that cannot be resumed
/// has begun: its end has a reason, and no NoStart.
NextStep step_after_error(const Error& error, RunCommand command = RunCommand::Run);

/// The end of a submission that choose_next() skips.
EndedSubmission end_of_skipped(const SkippedSubmission& skipped);

/// Whether the `notify` of the job receives that its submission ended before it began. One that was
/// not needed is not a failure.
bool is_notified(const EndedSubmission& end);

/// The facts when the run of a submission is to start.
struct RunToStart {
  std::string directory_lost;    ///< See why_directory_lost().
  bool had_begun = false;        ///< As of StartNow.
  run::RunOutcome outcome;       ///< The outcome of the run so far.
  bool was_put_back = false;     ///< Submission::runs_again.
  bool needs_ran_again = false;  ///< Runs that it needs ran after it: it is out of date.
};

/// The command that starts the run, or the end of a submission that does not start.
std::variant<RunCommand, EndedSubmission> command_for(const RunToStart& run);

/// The arguments of our program for the command.
std::vector<std::string> arguments_of(const Submission& submission, RunCommand command);

/// The arguments of another command for the job of a submission, with its run directory as an
/// option of this name.
std::vector<std::string> arguments_of(const Submission& submission, std::string_view command,
                                      std::string_view directory_option);

/// A run that began is not resumed any more after this number of incomplete ends in a row.
constexpr int kIncompleteEndsMax = 6;

/// The setbacks of the runs of a queue that are no failures of tasks: a process was killed, a run
/// ended incomplete (exit code 75), or could not start as the machine is short of something.
///
///   Setbacks setbacks;
///   setbacks.note_end(7, {.why = "no machine is left"}, finished, now);
///   setbacks.pause_left(7, now);  // a minute
///
/// Counts deaths in a row until the next end. A run is incomplete from such an end until the
/// submission ends, also while it is active again.
class Setbacks {
 public:
  /// Takes over a run that an earlier server found incomplete.
  void take_up(std::uint32_t number, const IncompleteRun& run);

  void note_death(std::uint32_t number);
  [[nodiscard]] int deaths_of(std::uint32_t number) const;

  /// Counts an end at this time, after which the pause is 1 minute, 2, 4, ... at most 30. Returns
  /// the run to note in its file, or the end of a run that began and is not resumed any more.
  [[nodiscard]] std::variant<IncompleteRun, EndedSubmission> note_end(std::uint32_t number,
                                                                      const SetAside& step,
                                                                      int finished,
                                                                      std::int64_t unix_ms);
  /// Notes that a run which could not start before has started: others may start, too.
  void note_start(std::uint32_t number);
  /// Forgets the setbacks of a submission that has ended.
  void forget(std::uint32_t number);
  /// Forgets the incomplete runs of these submissions.
  void forget_if(const std::function<bool(std::uint32_t number)>& is_gone);

  [[nodiscard]] bool is_incomplete(std::uint32_t number) const;
  /// The rest of the pause of an incomplete run.
  [[nodiscard]] Duration pause_left(std::uint32_t number, std::int64_t unix_ms) const;
  /// Whether a run could not start, as the machine is short of something: no other could either.
  [[nodiscard]] bool is_machine_short() const;

 private:
  std::map<std::uint32_t, int> deaths_;
  std::map<std::uint32_t, IncompleteRun> incomplete_;
};

}  // namespace trainyard::queue
