// `trainyard up`, `down` and `wait`.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/run_result.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/known_runs.h"
#include "cli/outer_task.h"
#include "cli/queue_start.h"
#include "cli/queued_runs.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"
#include "hardware/process_owner.h"
#include "journal/reader.h"
#include "queue/queue_files.h"
#include "queue/queue_server.h"
#include "report/terminal_text.h"
#include "run/active_run.h"
#include "run/run_directory.h"
#include "settings/configuration.h"
#include "sys/environment.h"
#include "sys/event_loop.h"
#include "sys/fifo.h"
#include "sys/files.h"
#include "sys/process_scan.h"
#include "sys/this_process.h"

namespace trainyard::cli {
namespace {

/// Starts this user's queue on this host, where it is not there.
struct UpOptions {
  std::string config_file;
  std::vector<std::string> settings;
};

struct DownOptions {
  bool drain = false;  ///< Active runs continue to their end.
  bool now = false;    ///< Active runs are stopped.
};

struct WaitOptions {
  std::vector<std::string> runs;  ///< Empty: the newest here, and the others here that have not
                                  ///< ended.
  bool all = false;               ///< Every run of this user on this host that has not ended.
};

using QueuePlace = queue::QueueFiles::Place;

constexpr Duration kLookedEvery{20};
constexpr Duration kWaitedEvery{50};
/// Ten seconds between TERM and KILL, plus the time to record how all ended.
constexpr Duration kGoneWithin{60'000};

bool is_gone_within(const queue::QueueFiles& files, Duration most) {
  const Duration until = sys::EventLoop::now() + most;
  while (files.server()) {
    if (sys::EventLoop::now() > until) return false;
    sys::let_pass(kLookedEvery);
  }
  return true;
}

/// The output of `down`: how many runs stay in the queue.
std::string what_stays(const queue::QueueFiles& files) {
  const std::size_t waiting =
      files.numbers(QueuePlace::Waiting).size() + files.numbers(QueuePlace::Begun).size();
  if (waiting == 0) return "your queue is down\n";
  return fmt::format("your queue is down; its {} {} with the next 'trainyard up' or 'submit'\n",
                     report::counted(waiting, "run"), waiting == 1 ? "continues" : "continue");
}

/// As app::held_tasks_alone(); 0 where the journal of the run cannot be read.
int held_alone(const std::string& run) {
  auto reader = journal::JournalReader::open(run::journal_path(run));
  const auto waiting = reader ? reader->waiting() : std::unexpected(reader.error());
  return waiting ? app::held_tasks_alone(*waiting, [&reader] { return reader->groups(); }) : 0;
}

std::optional<std::int64_t> suspended_process(const std::string& run) {
  const std::optional<std::int64_t> holder = run::active_process(run);
  return holder && sys::is_suspended(*holder) ? holder : std::nullopt;
}

app::WaitedSubmission look_in_queue(const queue::QueueFiles& files, std::uint32_t number) {
  const std::optional<QueuePlace> place = files.place_of(number);
  if (place != QueuePlace::Ended) {
    return {.is_in_queue = place.has_value(), .is_served = place && files.server()};
  }
  const auto ended = files.ended(number);
  if (!ended || !ended->no_start) return {};
  return {.no_start_code = ended->exit_code, .why = reason_of_end(files, *ended)};
}

/// Whether this command was started in a task of the run, or in a run that such a task has started:
/// the run ends after it.
bool is_part_of(const std::string& run) {
  const auto own = sys::variable("TRAINYARD_RUN_DIR");
  if (own && run::real_directory(*own) == run::real_directory(run)) return true;
  if (!sys::is_in_task()) return false;
  const std::int64_t holder = run::active_process(run).value_or(0);
  const std::vector<std::int64_t> ancestors = hardware::ancestors_of(sys::own_pid());
  return std::ranges::find(ancestors, holder) != ancestors.end();
}

/// As app::submissions_after_own_run(), for this queue. Costs O(all that wait).
std::map<std::uint32_t, std::string> submissions_that_start_later() {
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  if (!files || !sys::is_in_task()) return {};
  std::vector<queue::QueuedSubmission> waiting;
  for (const std::uint32_t number : files->numbers(QueuePlace::Waiting)) {
    const Result<queue::Submission> submission = files->read(QueuePlace::Waiting, number);
    if (submission) waiting.push_back(queue::queued(*submission));
  }
  return app::submissions_after_own_run(waiting, [](std::uint32_t needed) {
    std::optional<std::string> run = directory_of_run(needed);
    return run && is_part_of(*run) ? std::move(run) : std::nullopt;
  });
}

/// Each once. An error if a named run cannot end before this command; other such runs are left out.
Result<std::vector<std::string>> runs_to_wait_for(const WaitOptions& options) {
  std::vector<std::string> runs;
  if (options.all) {
    for (app::LivingRun& run : living_runs()) runs.push_back(std::move(run.directory));
  } else if (options.runs.empty()) {
    Result<std::vector<std::string>> here = app::newest_and_concurrent_runs(run_facts());
    if (!here) return here;
    runs = std::move(*here);
  }
  const std::map<std::uint32_t, std::string> start_later = submissions_that_start_later();
  const auto run_that_ends_later = [&](const std::string& run) -> std::optional<std::string> {
    if (is_part_of(run)) return run;
    if (start_later.empty()) return std::nullopt;
    const auto found = start_later.find(number_of_run(run).value_or(0));
    return found == start_later.end() ? std::nullopt : std::optional(found->second);
  };
  std::erase_if(runs, [&](const std::string& run) { return run_that_ends_later(run).has_value(); });
  std::set<std::string> seen;
  for (const std::string& named : options.runs) {
    const auto found = app::choose_run(named, WhenSeveral::TakeNewest, run_facts());
    if (!found) return std::unexpected(app::nothing_to_wait_for(named, found.error(), run_facts()));
    if (const std::string which = which_run_note(*found); !which.empty()) note(which);
    const std::string& run = found->run;
    if (const auto later = run_that_ends_later(run)) {
      return std::unexpected(app::wait_without_end(name_of_run(run), name_of_run(*later)));
    }
    if (seen.insert(run::real_directory(run)).second) runs.push_back(run);
  }
  return runs;
}

/// An error for a setting that the queue does not use. A key that is not a setting is left to the
/// reader of the configuration, which names the nearest one.
Result<void> check_queue_uses(const std::vector<std::string>& given) {
  const auto all = settings::settings();
  const std::string_view of_queue = all[std::to_underlying(settings::Setting::YardState)].key;
  for (const std::string& setting : given) {
    const std::string_view key = std::string_view(setting).substr(0, setting.find('='));
    const bool is_setting =
        std::ranges::find(all, key, &settings::SettingInfo::key) != std::ranges::end(all);
    if (!is_setting || key == of_queue) continue;
    return std::unexpected(Error{fmt::format(
        "--set {0}: this is a setting of runs, not of the queue: set it for each submission, as in "
        "'trainyard submit --set {0}=... JOB-FILE'",
        key)});
  }
  return {};
}

ExitCode up_command(const UpOptions& options) {
  if (const Result<void> used = check_queue_uses(options.settings); !used) {
    return fail(used.error());
  }
  if (const Result<void> outlives = check_queue_outlives_task(); !outlives) {
    return fail(outlives.error());
  }
  const Result<queue::QueueFiles> files =
      open_queue({.config_file = options.config_file, .settings = options.settings});
  if (!files) return fail(files.error());
  const bool drained = files->server() && files->is_draining();
  if (const Result<void> kept = files->set_draining(false); !kept) return fail(kept.error());
  const Result<bool> started = serve_queue(*files, queue::kLookWord);
  if (!started) return fail(started.error());
  if (const std::string less = lesser_limits(*files); !less.empty()) note(less);
  return answer(*started  ? "your queue is up\n"
                : drained ? "your queue stays up, and starts runs again\n"
                          : "your queue is already up\n");
}

ExitCode down_command(const DownOptions& options) {
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  if (!files) return fail(files.error());
  if (!files->server()) return answer("your queue is not up\n");
  if (const std::string why = why_suspended(*files); !why.empty()) {
    return fail(why, ExitCode::TaskFailed);
  }
  const std::size_t at_work = files->numbers(QueuePlace::Begun).size();
  if (at_work > 0 && !options.drain && !options.now) {
    return fail(
        fmt::format("{} {} active, so your queue stays up: 'trainyard down --drain' stops it when "
                    "its active runs have ended, and 'trainyard down --now' stops these runs, too",
                    report::counted(at_work, "run"), at_work == 1 ? "is" : "are"));
  }
  if (options.drain) {
    if (const Result<void> drains = files->set_draining(true); !drains) return fail(drains.error());
  }
  const std::string_view word = options.now     ? queue::kNowWord
                                : options.drain ? queue::kLookWord
                                                : queue::kDownWord;
  if (!sys::tell_fifo(files->words_path(), word)) {
    return fail("your queue does not respond; it may be suspended", ExitCode::TaskFailed);
  }
  if (options.drain && at_work > 0) {
    return answer(fmt::format("no more runs start; your queue goes down when {} {} ended\n",
                              report::counted(at_work, "run"), at_work == 1 ? "has" : "have"));
  }
  if (is_gone_within(*files, kGoneWithin)) return answer(what_stays(*files));
  return fail("your queue is still up: a run has started, or an active run has not ended",
              ExitCode::TaskFailed);
}

/// The exit code is that of the run, or of its one task; of several runs 0, 1 or 75.
ExitCode wait_command(const WaitOptions& options) {
  Result<std::vector<std::string>> runs = runs_to_wait_for(options);
  if (!runs) return fail(runs.error());
  if (runs->empty()) return answer(app::living_text({}));
  if (const auto outer = outer_task_names(); !outer.empty()) {
    const Result<void> fit = check_submissions_fit_beside(outer, *runs);
    if (!fit) return fail(fit.error());
  }
  const Result<queue::QueueFiles> files = queue::QueueFiles::of_this_user();
  const app::WaitFacts facts{
      .named = named_run,
      .submission =
          [&files](std::uint32_t number) {
            return files ? look_in_queue(*files, number) : app::WaitedSubmission{};
          },
      .why_nothing_begins = [&files] { return why_nothing_begins(*files); },
      .is_locked = [](const std::string& run) { return sys::RunLock::holder(run).has_value(); },
      .outcome = outcome_of,
      .held_alone = held_alone,
      .suspended = suspended_process,
      .note = note,
      .pause = [] { sys::let_pass(kWaitedEvery); }};
  // The code may be that of a task.
  return static_cast<ExitCode>(
      app::wait_for_runs(*runs, options.runs.empty() && !options.all, facts));
}

CLI::App* add_wait(CLI::App& app, WaitOptions& options) {
  CLI::App* const wait = app.add_subcommand("wait", "Wait until runs have ended");
  wait->group(command_groups::kRun);
  CLI::Option* const runs =
      wait->add_option("run,--run-dir", options.runs,
                       "Run numbers, names, directories or job files\n"
                       "(default: the last here, and those active since then)")
          ->type_name(value_kinds::kRun)
          ->check(empty_run_error);
  wait->add_flag("--all,-a", options.all, "Wait for all your runs on this machine")->excludes(runs);
  wait->footer(
      "Examples:\n"
      "  trainyard wait\n"
      "  trainyard wait 46\n"
      "  trainyard wait 46 47 runs/sweep\n"
      "  trainyard wait --all\n"
      "\n"
      "A name means the run created last with this name, even if it has not started.\n"
      "Exit code for one run: that of 'trainyard run', see its help. A run of one task has the\n"
      "task's exit code, 128 + signal if the task crashes, and 1 after a kill or a time limit. A\n"
      "run that waits in a queue that is not up has 75. A run that was not needed, as with\n"
      "'submit --if failure' after no failure, has 0.\n"
      "Exit code for several runs: 1 if one failed, else 75 if one is incomplete, else 0. Without\n"
      "RUN, the run created last here counts even if it has ended, and so does each run here that\n"
      "ended after its creation. If all other runs succeeded, its exit code is returned. With\n"
      "--all, no run counts that had ended: scripts name their runs.");
  return wait;
}

CLI::App* add_up(CLI::App& app, UpOptions& options) {
  CLI::App* const up = app.add_subcommand("up", "Start the queue on this machine");
  up->group(command_groups::kMachine);
  add_configuration(*up, options.config_file, options.settings);
  up->get_option("--set")->description("Set the directory of a new queue: yard.state=/var/tmp");
  up->footer(
      "Examples:\n"
      "  trainyard up\n"
      "  trainyard up --set yard.state=/var/tmp\n"
      "\n"
      "yard.state is the directory of the queue, on a disk of this machine. It is set when the\n"
      "queue is created, and cannot be changed later.\n"
      "Other settings belong to runs: give them to 'submit', or write them in the job file.\n"
      "'submit' starts the queue, too. After a reboot, runs of the queue resume and keep their\n"
      "finished tasks. Exit codes: 0 the queue is up, 2 it cannot start.");
  return up;
}

CLI::App* add_down(CLI::App& app, DownOptions& options) {
  CLI::App* const down = app.add_subcommand("down", "Stop the queue on this machine");
  down->group(command_groups::kMachine);
  constexpr const char* kActiveRuns = "Active runs";
  CLI::Option* drain = down->add_flag("--drain", options.drain,
                                      "Start no more runs; stop when the active ones have ended");
  drain->group(kActiveRuns);
  down->add_flag("--now", options.now,
                 "Stop active runs as Ctrl-C does; the next 'up' resumes them")
      ->group(kActiveRuns)
      ->excludes(drain);
  down->footer(
      "Examples:\n"
      "  trainyard down\n"
      "  trainyard down --drain\n"
      "  trainyard down --now\n"
      "\n"
      "Refuses while runs are active, unless --drain or --now is given. --drain returns at once;\n"
      "'up' stops the drain. Waiting runs stay in the queue.\n"
      "Exit codes: 0 done, or the queue was not up; 2 runs are active, nothing was done.");
  return down;
}

}  // namespace

Entry wait_entry() { return entry({"wait"}, add_wait, wait_command); }
Entry up_entry() { return entry({"up"}, add_up, up_command); }
Entry down_entry() { return entry({"down"}, add_down, down_command); }

}  // namespace trainyard::cli
