// `trainyard up`, `down` and `wait`.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/find_run.h"
#include "cli/known_runs.h"
#include "cli/queue_server.h"
#include "cli/queue_start.h"
#include "cli/queued_runs.h"
#include "cli/run_outcome.h"
#include "report/terminal_text.h"
#include "run/queue_files.h"
#include "sys/event_loop.h"
#include "sys/fifo.h"
#include "sys/files.h"
#include "sys/terminal.h"

namespace trainyard::cli {
namespace {

using QueuePlace = run::QueueFiles::Place;

constexpr Duration kLookedEvery{20};
constexpr Duration kWaitedEvery{50};
/// Ten seconds between TERM and KILL, and what it takes to write down how all ended.
constexpr Duration kGoneWithin{60'000};

bool is_gone_within(const run::QueueFiles& files, Duration most) {
  const Duration until = sys::EventLoop::now() + most;
  while (files.server()) {
    if (sys::EventLoop::now() > until) return false;
    sys::let_pass(kLookedEvery);
  }
  return true;
}

std::string how_many(std::size_t count, std::string_view what) {
  return report::counted(static_cast<std::int64_t>(count), what);
}

/// What stays, for whoever takes it down.
std::string what_stays(const run::QueueFiles& files) {
  const std::size_t waiting =
      files.numbers(QueuePlace::Waiting).size() + files.numbers(QueuePlace::Begun).size();
  if (waiting == 0) return "your queue is down\n";
  return fmt::format("your queue is down; its {} {} with the next 'trainyard up' or 'submit'\n",
                     how_many(waiting, "submission"), waiting == 1 ? "continues" : "continue");
}

/// Once, for who would wait in vain: until somebody lets the queue go on.
class SuspendedQueue {
 public:
  void look(const run::QueueFiles& files) {
    if (told_) return;
    const std::string why = why_nothing_begins(files);
    if (why.empty()) return;
    told_ = true;
    sys::write_standard_error(fmt::format("trainyard: {}\n", why));
  }

 private:
  bool told_ = false;
};

/// A submission in the eyes of whoever waits for it.
struct Waited {
  bool goes_on = false;     ///< It waits, or has begun and will end.
  std::optional<int> code;  ///< What `wait` ends with; nothing where its run says that.
};

Waited look_in_queue(const run::QueueFiles& files, const std::string& directory) {
  const std::optional<std::uint32_t> number = number_of_run(directory);
  const std::optional<QueuePlace> place = number ? files.place_of(*number) : std::nullopt;
  if (!place) return {};
  if (*place == QueuePlace::Ended) {
    const auto ended = files.ended(*number);
    if (!ended || ended->why.empty()) return {};
    fail(fmt::format("run {}: {}", *number, ended->why));
    return {.code = ended->exit_code};
  }
  // A run that was begun goes on without whoever serves the queue, and ends.
  if (files.server() || sys::RunLock::holder(directory)) return {.goes_on = true};
  const Result<RunOutcome> outcome = outcome_of(directory);
  if (outcome && outcome->stage == RunOutcome::Stage::Over) return {};
  const ExitCode code = fail(
      fmt::format("run {} waits, and {}", *number, why_nothing_begins(files)), ExitCode::NotDone);
  return {.code = static_cast<int>(code)};
}

}  // namespace

ExitCode up_command(const UpOptions& options) {
  const Result<run::QueueFiles> files =
      open_queue({.config_file = options.config_file, .settings = options.settings});
  if (!files) return fail(files.error());
  const Result<bool> started = serve_queue(*files, kUpWord);
  if (!started) return fail(started.error());
  return answer(*started ? "your queue is up\n" : "your queue is already up\n");
}

ExitCode down_command(const DownOptions& options) {
  const Result<run::QueueFiles> files = run::QueueFiles::of_this_user();
  if (!files) return fail(files.error());
  if (!files->server()) return answer("your queue is not up\n");
  if (const std::string why = why_nothing_begins(*files); !why.empty()) {
    return fail(why, ExitCode::TaskFailed);
  }
  const std::size_t at_work = files->numbers(QueuePlace::Begun).size();
  if (at_work > 0 && !options.drain && !options.now) {
    return fail(
        fmt::format("{} of your queue {} active, so it stays up: 'trainyard down --drain' starts "
                    "no more runs and waits for the active ones, 'trainyard down --now' stops them",
                    how_many(at_work, "run"), at_work == 1 ? "is" : "are"));
  }
  const std::string_view word = options.now ? kNowWord : options.drain ? kDrainWord : kDownWord;
  if (!sys::tell_fifo(files->words_path(), word)) {
    return fail("your queue does not listen: is it suspended?", ExitCode::TaskFailed);
  }
  if (options.drain && at_work > 0) {
    return answer(fmt::format("no more runs start; your queue goes down when {} {} ended\n",
                              how_many(at_work, "run"), at_work == 1 ? "has" : "have"));
  }
  if (is_gone_within(*files, kGoneWithin)) return answer(what_stays(*files));
  return fail("your queue is still up: a run has started, or an active run has not ended",
              ExitCode::TaskFailed);
}

int wait_command(const WaitOptions& options) {
  const Result<std::string> run = find_run(options.run);
  if (!run) return static_cast<int>(fail(run.error()));
  const Result<run::QueueFiles> files = run::QueueFiles::of_this_user();
  SuspendedQueue suspended;
  while (true) {
    const Waited waited = files ? look_in_queue(*files, *run) : Waited{};
    if (waited.goes_on && !sys::RunLock::holder(*run)) suspended.look(*files);
    if (waited.code) return *waited.code;
    const Result<RunOutcome> outcome = outcome_of(*run);
    if (!outcome) return static_cast<int>(fail(outcome.error()));
    // One of the queue that has died goes on.
    if (!waited.goes_on && outcome->stage == RunOutcome::Stage::NotBegun) {
      return static_cast<int>(fail("the run has not started", ExitCode::NotDone));
    }
    if (!waited.goes_on && outcome->stage != RunOutcome::Stage::AtWork) {
      const int code = outcome->task_code.value_or(static_cast<int>(outcome->code));
      if (code != 0) fail(fmt::format("{} ended: {}", name_of_run(*run), outcome->why));
      return code;
    }
    sys::let_pass(kWaitedEvery);
  }
}

}  // namespace trainyard::cli
