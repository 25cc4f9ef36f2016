// `trainyard status`: reads the journal, from any shell.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <expected>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "base/time.h"
#include "base/utf8.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/known_runs.h"
#include "cli/queued_runs.h"
#include "cli/run_machines.h"
#include "cli/selection_words.h"
#include "cli/shared_words.h"
#include "journal/reader.h"
#include "model/ids.h"
#include "queue/queue_files.h"
#include "report/sink.h"
#include "report/status.h"
#include "run/active_run.h"
#include "run/begun.h"
#include "run/noted_ends.h"
#include "run/run_directory.h"
#include "sys/clock.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "sys/process_scan.h"
#include "sys/terminal.h"

namespace trainyard::cli {
namespace {

struct StatusOptions {
  /// Run and tasks, as app/task_selection.h says; a word that is a run is taken as one.
  std::vector<std::string> words;
  std::string run_directory;  ///< Empty: the latest under ./runs, as app/run_name.h says.
  bool json = false;
  bool watch = false;
  bool all = false;
};

constexpr Duration kWatchEvery{1000};

/// Columns of the terminal; 0: the output goes elsewhere.
int width_of_output() {
  return sys::is_terminal(sys::kStandardOutput) ? sys::terminal_width(sys::kStandardOutput) : 0;
}

Result<void> show_once(journal::JournalReader& reader, const StatusOptions& options,
                       const report::StatusRequest& request, report::Sink& sink) {
  if (options.json) return report::write_status_json(reader, request, options.all, sink);
  return report::write_status(reader, request,
                              {.width = width_of_output(),
                               .colour = sys::takes_colour(sys::kStandardOutput),
                               .all = options.all},
                              sink);
}

struct Screen {
  std::string text;
  bool is_last = true;  ///< --watch ends with it.
};

/// Shows what `look` returns: once, or with --watch each second until the last, or until Ctrl-C or
/// TERM. `clear` is printed before each.
ExitCode watch(const StatusOptions& options, std::string_view clear,
               const std::function<Result<Screen>()>& look) {
  sys::EventLoop loop;
  bool watching = options.watch;
  if (watching) loop.watch_signals({SIGINT, SIGTERM}, [&](int) { watching = false; });
  while (true) {
    const Result<Screen> screen = look();
    if (!screen) return fail(screen.error());
    // In one piece, so that a redrawn screen does not flicker.
    if (!print_bytes(std::string(clear) + screen->text)) return ExitCode::TaskFailed;
    if (!watching || screen->is_last) return ExitCode::Success;
    const Duration next = sys::EventLoop::now() + kWatchEvery;
    while (watching && sys::EventLoop::now() < next) loop.run_once(next - sys::EventLoop::now());
  }
}

/// Moves the cursor home, and erases the screen below, where --watch redraws it.
std::string_view clear_of(const StatusOptions& options) {
  return options.watch && sys::can_redraw(sys::kStandardOutput) ? "\x1b[H\x1b[2J" : "";
}

app::LivingTextOptions text_options() {
  return {.width = width_of_output(), .is_cleanable = [](const app::LivingRun& run) {
            return time_of_no_start(run.directory).has_value();
          }};
}

/// The active runs of this user on this host, wherever they are, and those that lately did not
/// start.
ExitCode show_living(const StatusOptions& options) {
  const Result<queue::QueueFiles> queue = queue::QueueFiles::of_this_user();
  return watch(options, clear_of(options), [&]() -> Result<Screen> {
    std::vector<app::LivingRun> runs = living_runs();
    const bool is_last = runs.empty();
    std::ranges::move(runs_without_start(), std::back_inserter(runs));
    const std::string text =
        options.json ? app::living_json(runs)
                     : app::living_page(runs, queue ? lesser_limits(*queue) : "", text_options());
    return Screen{.text = visible_lines(text), .is_last = is_last};
  });
}

/// Tasks and processes that a run left when it died.
struct Remains {
  Duration tasks_run_for{0};  ///< The time that tasks on its agents may still run.
  std::vector<std::int64_t> processes = {};
};

/// Nothing while the process of the run lives.
Result<Remains> remains_of(journal::JournalReader& reader, const std::string& run, bool lives) {
  if (lives) return Remains{};
  const Result<std::vector<journal::ExecutionRow>> executions = reader.executions();
  if (!executions) return std::unexpected(executions.error());
  const Result<Instant> last = reader.last_instant();
  if (!last) return std::unexpected(last.error());
  if (executions->empty()) return Remains{};
  Remains remains{.tasks_run_for = time_left_for_tasks(run, executions->back(), *last)};
  // Until then, a resumed run continues tasks of agents, which may be on this host.
  if (remains.tasks_run_for <= Duration{0}) {
    remains.processes = run::processes_left(run, executions->back());
  }
  return remains;
}

/// The runs that `status` lists, with their real directories: a run that was moved keeps the path
/// that it had, where a link to it may be.
std::vector<app::LivingRun> listed_runs() {
  std::vector<app::LivingRun> runs = living_runs();
  std::ranges::move(runs_without_start(), std::back_inserter(runs));
  for (app::LivingRun& run : runs) run.directory = run::real_directory(run.directory);
  return runs;
}

/// The other runs, next to the one that is shown without a name.
std::string also_living(const std::string& shown) {
  std::vector<app::LivingRun> runs = listed_runs();
  return app::other_runs_text(std::move(runs), run::real_directory(shown), text_options());
}

/// A submission that has not begun, as `status` lists it; nothing if it does not list it.
std::vector<app::LivingRun> submission_without_run(const std::string& run) {
  if (run::active_process(run) || run::has_begun(run).value_or(true)) return {};
  std::vector<app::LivingRun> runs = listed_runs();
  std::erase_if(runs, [shown = run::real_directory(run)](const app::LivingRun& other) {
    return other.directory != shown;
  });
  return runs;
}

/// A submission that waits is followed until it begins: then nothing is returned.
std::optional<ExitCode> show_waiting(const StatusOptions& options, const std::string& run) {
  bool waits = true;
  std::string shown;
  const ExitCode code = watch(options, "", [&]() -> Result<Screen> {
    const auto why = run::active_process(run) ? std::nullopt : why_not_begun(run);
    waits = why && !run::has_begun(run).value_or(true);
    if (!waits) return Screen{};
    std::string text = visible_lines(why->message + "\n");
    const bool is_new = text != std::exchange(shown, text);
    return Screen{.text = is_new ? std::move(text) : "", .is_last = !waits_in_queue(run)};
  });
  return waits ? std::optional(code) : std::nullopt;
}

/// Nothing where all are meant.
Result<std::optional<std::set<model::TaskIndex>>> asked_indices(journal::JournalReader& reader,
                                                                const TasksOfRun& asked) {
  if (asked.is_all()) return std::nullopt;
  const auto rows = selected_tasks(reader, asked, SameName::MeansAll);
  if (!rows) return std::unexpected(rows.error());
  std::set<model::TaskIndex> indices;
  for (const journal::TaskRow& row : *rows) indices.insert(row.index);
  return indices;
}

ExitCode status_command(const StatusOptions& options) {
  const bool nothing_said = options.words.empty() && options.run_directory.empty();
  SelectionWords words{.words = options.words, .run_directory = options.run_directory};
  for (std::string& word : words.words) word = without_mark(std::move(word));
  const auto error_of_words = [&](const Error& error) {
    return options.watch ? app::with_cure_of_interval(words, error) : error;
  };
  const Result<TasksOfRun> asked = app::read_shown_selection(words, run_facts());
  if (!asked && nothing_said) return show_living(options);
  if (!asked) return fail(error_of_words(asked.error()));
  // A submission that never started is no news next to runs that are active.
  if (nothing_said && time_of_no_start(asked->run) && !living_runs().empty()) {
    return show_living(options);
  }
  if (const std::string which = which_run_note(*asked); !which.empty()) note(which);
  const std::string& run = asked->run;
  if (options.json) {
    const std::vector<app::LivingRun> submission = submission_without_run(run);
    if (!submission.empty()) return answer(app::living_json(submission));
  } else if (const std::optional<ExitCode> waited = show_waiting(options, run)) {
    return *waited;
  }
  Result<journal::JournalReader> reader = open_run(run);
  if (!reader) {
    const ExitCode failed = fail(reader.error());
    if (nothing_said && !options.json) print(also_living(run));
    return failed;
  }
  // A program wants to find the place from wherever it is.
  const std::string named = options.json ? run : seen_from_here(run);
  const std::optional<std::uint32_t> number = number_of_run(run);
  return watch(options, clear_of(options), [&]() -> Result<Screen> {
    const Result<void> fresh = reader->refresh();
    if (!fresh) return std::unexpected(fresh.error());
    const auto holder = run::active_process(run);
    auto only = asked_indices(*reader, *asked);
    if (!only) return std::unexpected(error_of_words(only.error()));
    const bool none = *only && (*only)->empty();
    const Result<std::vector<std::uint32_t>> again = needs_run_again(run);
    if (!again) return std::unexpected(again.error());
    const Result<Remains> remains = remains_of(*reader, run, holder.has_value());
    if (!remains) return std::unexpected(remains.error());
    // With colours, where names are safe to show already. All that is added must be made so.
    std::string text;
    report::Sink sink = [&](std::string_view piece) { text += piece; };
    const Result<void> shown = show_once(*reader, options,
                                         {.run_directory = named,
                                          .number = number,
                                          .needs_run_again = *again,
                                          .runs_again = again->empty() ? "" : how_runs_again(run),
                                          .queue_resumes = holder ? "" : prospect_in_queue(run),
                                          .yard_lives = holder.has_value(),
                                          .yard_suspended = holder && sys::is_suspended(*holder),
                                          .tasks_run_for = remains->tasks_run_for,
                                          .processes_left = remains->processes,
                                          .now_unix_ms = sys::unix_milliseconds(),
                                          .only = std::move(*only)},
                                         sink);
    if (!shown) return std::unexpected(shown.error());
    if (options.json) text = visible_lines(text);
    if (none && !options.json) text += visible(none_in_state(*asked)) + "\n";
    if (nothing_said && !options.json && !options.watch) text += visible_lines(also_living(run));
    if (const Result<void> rested = options.watch ? reader->rest() : Result<void>(); !rested) {
      return std::unexpected(rested.error());
    }
    return Screen{.text = std::move(text), .is_last = !holder};
  });
}

CLI::App* add_status(CLI::App& app, StatusOptions& options) {
  CLI::App* status = app.add_subcommand("status", "Show the state of a run and its tasks");
  status->group(command_groups::kWatch);
  add_selection(*status, options.words, options.run_directory);
  const auto in_output = [](CLI::Option* option) { option->group(option_groups::kOutput); };
  in_output(
      status->add_flag("--watch,-w", options.watch, "Refresh each second until the run ends"));
  in_output(status->add_flag("--all,-a", options.all,
                             "List all tasks of the run, not only running and failed ones"));
  add_json(*status, options.json);
  status->footer(std::string("Examples:\n"
                             "  trainyard status\n"
                             "  trainyard status 46 --watch\n"
                             "  trainyard status 46 :failed lr=1e-3\n"
                             "  trainyard status ~/experiments/sweep.yaml\n"
                             "  trainyard status runs/sweep --json --all\n"
                             "\n") +
                 kSelectionHelp);
  return status;
}

}  // namespace

Entry status_entry() { return entry({"status"}, add_status, status_command); }

}  // namespace trainyard::cli
