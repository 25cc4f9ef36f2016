// The output of `trainyard status` for a run, active or ended, as text and as JSON. Pure: the code
// that reads the journal for it is in report/status.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "journal/reader.h"

namespace trainyard::report {

/// The number of tasks of a kind that the text shows.
constexpr int kRunningShown = 40;
constexpr int kRetryingShown = 10;
constexpr int kFailedShown = 10;
constexpr int kWarnedShown = 10;
constexpr int kLearnedShown = 10;
constexpr int kMachinesShown = 40;

enum class RunState : std::uint8_t {
  Running,
  Stopping,   ///< Interrupted: no task starts, and running tasks are stopped.
  Suspended,  ///< As by Ctrl-Z: tasks keep running, but none is monitored or started.
  Idle,       ///< All has ended, and the program whose run it is has more to do.
  Ended,
  Died,  ///< No end was recorded, and no process runs it any more.
};
/// Whether the run monitors its tasks.
constexpr bool is_monitored(RunState state) {
  return state == RunState::Running || state == RunState::Stopping;
}
/// Whether tasks of the run may be running.
constexpr bool is_active(RunState state) {
  return is_monitored(state) || state == RunState::Suspended;
}

struct StatusView {
  std::string job;
  std::string run_directory;
  std::optional<std::uint32_t> number;  ///< The number of the run on this host.
  /// The runs that it needs and that ran again after it had started: it is out of date.
  std::vector<std::uint32_t> needs_run_again = {};
  std::string runs_again =
      {};  ///< "'trainyard retry 3 --cascade' runs it again", if there are any.
  /// "your queue resumes it in 1m30s", "'trainyard up' resumes it", or why the queue has given the
  /// run up; else empty.
  std::string queue_resumes = {};
  RunState state = RunState::Running;
  Instant now;  ///< The end, where it has ended; the last sign of life, where it died.
  Duration tasks_run_for{0};  ///< See StatusRequest.
  /// The pids of tasks of a run that died which are still running on this host, in order.
  std::vector<std::int64_t> processes_left = {};
  journal::ExecutionRow execution;  ///< The last one.
  std::vector<journal::GroupRow> groups;
  /// Includes tasks that wait for a retry. Of a run that is not active: the tasks that it has lost.
  std::vector<journal::TaskRow> running;
  std::vector<journal::TaskRow> failed;  ///< The first ones.
  std::vector<journal::TaskRow> warned;  ///< The first ones whose result is missing or changed, ...
  int warned_count = 0;                  ///< ... of this number.
  std::vector<journal::WaitingReason> waiting;
  std::vector<journal::LearnedRow> learned;
  std::vector<journal::SharingRow> sharing;
  std::optional<journal::SampleRow> sample;   ///< The last one.
  std::vector<journal::MachineRow> machines;  ///< The machines of the last execution.
};

/// "run 46: runs/sweep", or "run-dir: runs/sweep" of one without a number.
std::string run_line(std::optional<std::uint32_t> number, const std::string& run_directory);

/// The first lines: how the run is, and which it is.
std::string status_header(const StatusView& view);

/// For people. Shows at most kRunningShown, kRetryingShown, kFailedShown and kWarnedShown tasks.
/// `width`: the columns of the terminal that its tables are to fit; 0: any.
std::string status_text(const StatusView& view, int width = 0);

/// For programs, all but the brace at the end: more members may follow (see report/status.h).
std::string status_json_open(const StatusView& view);

/// For programs, whole.
std::string status_json(const StatusView& view);

}  // namespace trainyard::report
