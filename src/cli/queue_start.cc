#include "cli/queue_start.h"

#include <cstdlib>
#include <expected>
#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/time.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/queued_runs.h"
#include "job/task_keys.h"
#include "queue/queue_server.h"
#include "settings/configuration.h"
#include "sys/depart.h"
#include "sys/environment.h"
#include "sys/event_loop.h"
#include "sys/fifo.h"
#include "sys/files.h"
#include "sys/logind.h"
#include "sys/process_limits.h"
#include "sys/start_program.h"
#include "sys/terminal.h"
#include "sys/this_process.h"
#include "text/mistake.h"

namespace trainyard::cli {
namespace {

/// Number of tries to reach a server that is just starting or exiting.
constexpr int kSpeaksMax = 100;
constexpr Duration kSpeaksEvery{20};
constexpr const char* kServerName = "trainyard-queue";

void tell_started() {
  note(fmt::format(
      "your queue on {} has started: 'trainyard status' lists it, 'trainyard down' stops it",
      sys::host_name()));
  const std::string user = sys::variable("USER").value_or("");
  if (!sys::variable("XDG_SESSION_ID") || !sys::ends_at_logout("", user)) return;
  note(
      "logind stops it when you log out (KillUserProcesses): 'loginctl enable-linger' keeps it "
      "running");
}

/// The server has its log as standard error.
void note_in_log(const std::string& text) {
  sys::write_standard_error(fmt::format("trainyard queue: {}\n", text));
}

/// Serves the queue in the process that was forked for it.
[[noreturn]] void become_server(const queue::QueueFiles& files, sys::Departure departure) {
  sys::rename_process(kServerName);
  std::error_code ignored;
  // Stays out of directories that a user may want to unmount.
  std::filesystem::current_path("/", ignored);
  Result<sys::RunLock> lock = sys::RunLock::take(files.directory());
  // Another process was faster, and receives the words as well.
  if (!lock && files.server()) std::_Exit(EXIT_SUCCESS);
  Result<sys::Descriptor> words =
      lock ? sys::open_fifo(files.words_path()) : std::unexpected(lock.error());
  Result<sys::Descriptor> log =
      words ? sys::open_log(files.log_path(), sys::IfThere::Empty) : std::unexpected(words.error());
  if (!log) {
    note("the queue cannot start: " + log.error().message);
    std::_Exit(static_cast<int>(ExitCode::Usage));
  }
  // A server that drained before this one began has gone.
  if (const Result<void> begins = files.set_draining(false); !begins) {
    note_in_log(begins.error().message);
  }
  queue::QueueServer server(files, std::move(*lock), std::move(*words),
                            {.outcome_of = outcome_of,
                             .count_finished = count_finished,
                             .is_out_of_date = [](const std::string& run) -> Result<bool> {
                               const Result<std::vector<std::uint32_t>> again =
                                   needs_run_again(run);
                               if (!again) return std::unexpected(again.error());
                               return !again->empty();
                             },
                             .fate_of = fate_of_run,
                             .note = note_in_log});
  departure.begun("up", *log);
  server.serve();
  std::_Exit(EXIT_SUCCESS);
}

/// Starts a server in a separate process, unless the queue is served already. True if it did.
Result<bool> start_queue(const queue::QueueFiles& files) {
  Result<std::variant<sys::Departure, sys::Departed>> departed = sys::depart();
  if (!departed) return std::unexpected(std::move(departed.error()));
  if (auto* const departure = std::get_if<sys::Departure>(&*departed)) {
    become_server(files, std::move(*departure));
  }
  const auto& heard = std::get<sys::Departed>(*departed);
  if (heard.word.empty() && heard.exit_code != 0) {
    return std::unexpected(Error{"your queue could not be started"});
  }
  return !heard.word.empty();
}

}  // namespace

Result<void> check_queue_outlives_task() {
  if (!sys::is_in_task()) return {};
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  if (!files) return std::unexpected(files.error());
  if (files->server()) return {};
  return std::unexpected(Error{
      "your queue is not up, and a task cannot start it, as it would stop with the task: type "
      "'trainyard up' outside of tasks first"});
}

Result<queue::QueueFiles> open_queue(const QueuePlaceWords& words) {
  if (const auto job = sys::variable("SLURM_JOB_ID")) {
    return std::unexpected(Error{fmt::format(
        "a queue cannot run inside Slurm allocation {}, as it would stop with the allocation: use "
        "'trainyard run', or 'trainyard run -d', which runs until the allocation ends",
        *job)});
  }
  const Result<std::string> here = sys::current_directory();
  if (!here) return std::unexpected(here.error());
  const auto configuration =
      settings::load_configuration({.config_file = words.config_file,
                                    .settings = words.settings,
                                    .current_directory = *here,
                                    .task_keys = job::keys_of_task_options()});
  if (!configuration) {
    return std::unexpected(Error{text::to_text(configuration.error().front())});
  }
  Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  if (!files) return files;
  const std::string& elsewhere = configuration->text(settings::Setting::YardState);
  if (const Result<void> made = files->make(elsewhere == "auto" ? "" : elsewhere); !made) {
    return std::unexpected(Error(made.error()).in("your queue"));
  }
  if (elsewhere != "auto" && !queue::is_in(*files, elsewhere)) {
    note(fmt::format("yard.state={} has no effect: your queue was made in '{}' and stays there",
                     elsewhere, files->directory()));
  }
  return files;
}

Result<bool> serve_queue(const queue::QueueFiles& files, std::string_view word) {
  bool started = false;
  for (int spoken = 0; spoken < kSpeaksMax; ++spoken) {
    if (files.server() && sys::tell_fifo(files.words_path(), word)) {
      if (started) tell_started();
      return started;
    }
    if (files.server()) {
      // The server is starting or exiting.
      sys::let_pass(kSpeaksEvery);
      continue;
    }
    const Result<bool> now = start_queue(files);
    if (!now) return std::unexpected(now.error());
    started = started || *now;
  }
  return std::unexpected(Error{"your queue does not respond; it may be suspended"});
}

void serve_submissions(const queue::QueueFiles& files, std::size_t count) {
  const Result<bool> served = serve_queue(files, queue::kLookWord);
  const std::string wait = count == 1 ? "the submission waits" : "the submissions wait";
  if (!served) {
    fail(fmt::format("{}; {} in it", served.error().message, wait));
  } else if (const std::string why = why_nothing_begins(files); !why.empty()) {
    fail(fmt::format("{}: {}", wait, why));
  } else if (const std::string less = lesser_limits(files); !less.empty()) {
    fail(less);
  }
}

Result<queue::Submission> with_own_shell(queue::Submission submission) {
  Result<sys::ProcessLimits> limits = sys::limits_of(sys::own_pid());
  if (!limits) return std::unexpected(std::move(limits.error()));
  submission.limits = std::move(*limits);
  submission.umask = sys::own_umask();
  submission.environment = sys::environment();
  return submission;
}

}  // namespace trainyard::cli
