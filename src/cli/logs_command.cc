// `trainyard logs`: the output of a task, once or for as long as it runs.
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/task_logs.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/known_runs.h"
#include "cli/selection_words.h"
#include "cli/value_checks.h"
#include "cli/value_kinds.h"
#include "journal/reader.h"
#include "model/rank_environment.h"
#include "model/status.h"
#include "model/waiting.h"
#include "report/digest.h"
#include "report/log_text.h"
#include "report/terminal_text.h"
#include "run/active_run.h"
#include "run/run_directory.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "sys/tail.h"
#include "sys/terminal.h"

namespace trainyard::cli {
namespace {

struct LogsOptions : app::LogRequest {
  std::vector<std::string> words;  ///< Run and tasks, as app/task_selection.h says.
  std::string run_directory;
};

constexpr Duration kLookEvery{200};

/// Several files as one stream, with a heading where it changes from one to the other, as tail(1)
/// does.
class Streams {
 public:
  Streams(std::string run, bool raw, bool headings, Printer& printer)
      : printer_(&printer), run_(std::move(run)), raw_(raw), headings_(headings) {}

  /// A task may have put a link below the run directory: logs beyond it are of another task or run.
  void add(std::string path) {
    streams_.push_back({.file = sys::Tail(std::move(path), run_), .fold = {}});
    headings_ = headings_ || streams_.size() > 1;
  }

  /// Begins with the present content: one file after the other, so that no file waits for another
  /// that grows as fast as it is printed.
  void begin_round() {
    for (Stream& stream : streams_) stream.file.stop_at_present();
    at_ = 0;
  }

  /// Prints one piece of it; false when there is no more. An error is that of a file that is there
  /// and cannot be read.
  Result<bool> print_piece() {
    while (at_ < streams_.size()) {
      Stream& stream = streams_[at_];
      Result<std::string> piece = stream.file.read_more();
      if (!piece) return std::unexpected(std::move(piece.error()));
      if (!piece->empty()) {
        show(at_, raw_ ? *piece : stream.fold.feed(*piece));
        return true;
      }
      ++at_;
    }
    return false;
  }

  void finish() {
    for (std::size_t i = 0; i < streams_.size(); ++i) show(i, streams_[i].fold.finish());
  }

  [[nodiscard]] bool has_shown_any() const { return shown_.has_value(); }

 private:
  struct Stream {
    sys::Tail file;
    report::CarriageFolder fold;
  };

  void show(std::size_t place, std::string_view text) {
    if (text.empty()) return;
    if (headings_ && shown_ != place) {
      printer_->print(
          fmt::format("{}==> {} <==\n", shown_ ? "\n" : "", streams_[place].file.path()));
    }
    shown_ = place;
    printer_->print_bytes(text);
  }

  Printer* printer_;
  std::string run_;
  bool raw_;
  bool headings_;
  std::vector<Stream> streams_;
  std::size_t at_ = 0;                ///< The index of the stream that is printed in this round.
  std::optional<std::size_t> shown_;  ///< The place of the stream that was printed last.
};

/// Shows the logs of one attempt after the other.
class Follower {
 public:
  /// Asked between two pieces whether to continue.
  using GoesOn = std::move_only_function<bool()>;

  Follower(journal::JournalReader& reader, const LogsOptions& options, std::string run,
           journal::TaskRow task, Printer& printer, GoesOn goes_on)
      : reader_(reader),
        options_(options),
        printer_(printer),
        goes_on_(std::move(goes_on)),
        run_(std::move(run)),
        task_(std::move(task)),
        attempt_(wanted()),
        streams_(streams(false)) {}

  /// False if the requested rank has not printed anything, and is not waited for.
  [[nodiscard]] bool has_log() const {
    return options_.rank <= 0 || options_.follow || sys::exists(log_of_rank(options_.rank));
  }

  /// Prints new output. False when no more can come.
  Result<bool> step() {
    // Checked first: text that an attempt wrote before its end was seen is then still printed.
    const Result<bool> more = look();
    if (!more) return more;
    if (const Result<void> shown = print_round(); !shown) return std::unexpected(shown.error());
    if (wanted() == attempt_) return more;
    streams_.finish();
    has_shown_any_ = has_shown_any();
    attempt_ = wanted();
    ranks_ = 0;
    streams_ = streams(true);
    return true;
  }

  Result<void> finish() {
    const Result<void> shown = print_round();
    if (shown) streams_.finish();
    return shown;
  }

  /// False when the log was deleted, or is still on another machine.
  [[nodiscard]] bool has_file() const {
    const bool only_stderr = options_.only_stderr && !options_.only_stdout;
    return sys::exists(options_.rank > 0
                           ? log_of_rank(options_.rank)
                           : directory() +
                                 run::log_name(only_stderr ? "stderr" : "stdout", attempt_));
  }

  /// The task at the last reading.
  [[nodiscard]] const journal::TaskRow& task() const { return task_; }

  /// False when no attempt that was shown has printed anything.
  [[nodiscard]] bool has_shown_any() const { return has_shown_any_ || streams_.has_shown_any(); }

 private:
  /// Prints the present content, unless a signal stops it.
  Result<void> print_round() {
    add_ranks();
    streams_.begin_round();
    while (goes_on_()) {
      const Result<bool> more = streams_.print_piece();
      if (!more) return std::unexpected(more.error());
      if (!*more) break;
    }
    return {};
  }

  [[nodiscard]] std::uint32_t wanted() const {
    return options_.attempt > 0 ? static_cast<std::uint32_t>(options_.attempt)
                                : std::max(task_.attempt, 1U);
  }

  [[nodiscard]] std::string directory() const { return run_ + "/" + task_.directory + "/"; }

  [[nodiscard]] std::string log_of_rank(int rank) const {
    return directory() + run::log_name(fmt::format("rank-{}", rank), attempt_);
  }

  /// The logs of the ranks from 1 on, as they come to be. Rank 0 prints where a task does.
  void add_ranks() {
    if (options_.rank >= 0 || options_.only_stdout || options_.only_stderr) return;
    while (sys::exists(log_of_rank(ranks_ + 1))) streams_.add(log_of_rank(++ranks_));
  }

  [[nodiscard]] Streams streams(bool headings) const {
    Streams streams(run_, raw(), headings, printer_);
    const bool both = options_.only_stdout == options_.only_stderr;
    if (options_.rank > 0) {
      streams.add(log_of_rank(options_.rank));
      return streams;
    }
    if (both || options_.only_stdout) {
      streams.add(directory() + run::log_name("stdout", attempt_));
    }
    if (both || options_.only_stderr) {
      streams.add(directory() + run::log_name("stderr", attempt_));
    }
    return streams;
  }

  /// On a terminal, a followed progress bar may redraw itself.
  [[nodiscard]] bool raw() const {
    return options_.follow && sys::can_redraw(sys::kStandardOutput);
  }

  /// Whether more output may come from the attempts that are followed.
  Result<bool> look() {
    if (const Result<void> fresh = reader_.refresh(); !fresh) return std::unexpected(fresh.error());
    Result<std::optional<journal::TaskRow>> now = reader_.find(task_.index);
    if (!now) return std::unexpected(std::move(now.error()));
    if (const Result<void> rested = reader_.rest(); !rested) return std::unexpected(rested.error());
    std::optional<journal::TaskRow>& row = *now;
    if (!row) return false;
    task_ = std::move(*row);
    return task_.attempt <= wanted() && task_.standing.verdict == model::Verdict::None &&
           run::active_process(run_).has_value();
  }

  journal::JournalReader& reader_;
  const LogsOptions& options_;
  Printer& printer_;
  GoesOn goes_on_;
  std::string run_;
  journal::TaskRow task_;
  std::uint32_t attempt_;
  int ranks_ = 0;               ///< The number of ranks with a stream, apart from rank 0.
  bool has_shown_any_ = false;  ///< An attempt before this one has printed something.
  Streams streams_;
};

/// ": max-parallel allows 1 task of its group at once", of a task that waits; empty if its kind of
/// task has not been considered yet.
std::string why_it_waits(journal::JournalReader& reader, const journal::TaskRow& task) {
  const Result<std::vector<journal::WaitingReason>> reasons = reader.waiting();
  if (!reasons) return {};
  const auto is_its = [&task](const journal::WaitingReason& it) {
    return it.shape == task.shape && (it.cause == model::Cause::Held) == task.standing.on_hold;
  };
  const auto found = std::ranges::find_if(*reasons, is_its);
  return found == reasons->end() ? std::string() : ": " + report::plain(found->reason);
}

/// "g/a is LOST; run 1 ('runs/a') is not running: 'trainyard status runs/a' shows how to resume it",
/// if the run has ended and the task has not; else empty.
std::string why_no_more(journal::JournalReader& reader, const std::string& run,
                        const journal::TaskRow& task) {
  // The run may have recorded the end of the task after the last reading.
  if (run::active_process(run) || !reader.refresh()) return {};
  Result<std::optional<journal::TaskRow>> found = reader.find(task.index);
  if (!found || !*found) return {};
  journal::TaskRow& now = **found;
  const Result<std::string> socket = socket_of_run(reader, run);
  if (now.standing.verdict != model::Verdict::None || socket) return {};
  if (is_over(reader, run)) report::mark_lost(now);
  return fmt::format("{} is {}; {}", shown_name(now), model::word_for(now.standing),
                     socket.error().message);
}

/// The task, until it ends where it is followed.
ExitCode follow(journal::JournalReader& reader, const LogsOptions& options, const std::string& run,
                const journal::TaskRow& task) {
  sys::EventLoop loop;
  bool following = options.follow;
  bool ended = false;
  // Without -f a signal ends this process in the usual way, also while a full pipe blocks it.
  if (following) {
    loop.watch_signals({SIGINT, SIGTERM}, [&](int) {
      following = false;
      ended = true;
    });
  }
  if (task.attempt == 0 && run::active_process(run)) {
    note(fmt::format("{} has not started{}; its output follows when it starts", shown_name(task),
                     why_it_waits(reader, task)));
  }
  Printer printer;
  Follower follower(reader, options, run, task, printer, [&] {
    loop.run_once(Duration{0});
    return !ended && printer.works();
  });
  if (!follower.has_log()) {
    return fail(fmt::format("{} has no log of rank {}", shown_name(task), options.rank));
  }
  while (following && printer.works()) {
    const Result<bool> more = follower.step();
    if (!more) return fail(more.error());
    if (!*more) break;
    const Duration next = sys::EventLoop::now() + kLookEvery;
    while (following && sys::EventLoop::now() < next) loop.run_once(next - sys::EventLoop::now());
  }
  if (const Result<void> shown = follower.finish(); !shown) return fail(shown.error());
  const app::ShownLogs logs{.have_text = follower.has_shown_any() || !printer.works(),
                            .have_file = follower.has_file()};
  const std::string missing = app::note_after_logs(options, task, follower.task(), logs);
  if (!missing.empty()) fail(missing);
  const bool is_gone = app::is_log_gone(options, task, follower.task(), logs);
  if (is_gone && !ended) return ExitCode::Usage;
  if (options.follow && !ended && printer.works()) {
    if (const std::string why = why_no_more(reader, run, task); !why.empty()) note(why);
  }
  return printer.works() ? ExitCode::Success : ExitCode::TaskFailed;
}

/// Shows one task after the other, each under its name. A task without such a log has a line that
/// says so; an error if no task has one, or if a log that was written cannot be shown.
ExitCode show_several(journal::JournalReader& reader, const LogsOptions& options,
                      const std::string& run, const std::vector<journal::TaskRow>& tasks) {
  const auto has_log = [&options](const journal::TaskRow& task) {
    return app::why_no_log(options, task).empty();
  };
  if (std::ranges::none_of(tasks, has_log)) return fail(app::none_has_log(options, tasks));
  ExitCode code = ExitCode::Success;
  for (const journal::TaskRow& task : tasks) {
    const bool first = &task == &tasks.front();
    const std::string wrong = app::why_no_log(options, task);
    const std::string heading =
        fmt::format("{}==> {} <==\n", first ? "" : "\n", wrong.empty() ? shown_name(task) : wrong);
    if (!print(heading)) return ExitCode::TaskFailed;
    if (!wrong.empty()) continue;
    const ExitCode shown = follow(reader, options, run, task);
    if (shown == ExitCode::TaskFailed) return shown;
    if (code == ExitCode::Success) code = shown;
  }
  return code;
}

ExitCode logs_command(const LogsOptions& options) {
  const Result<TasksOfRun> selection =
      read_selection({.words = options.words, .run_directory = options.run_directory});
  if (!selection) return fail(selection.error());
  if (const std::string which = which_run_note(*selection); !which.empty()) note(which);
  Result<journal::JournalReader> reader = open_run(selection->run);
  if (!reader) return fail(reader.error());
  const auto tasks = selected_tasks(*reader, *selection, SameName::Refuse);
  if (!tasks) return fail(tasks.error());
  if (tasks->empty()) return fail(none_in_state(*selection));
  const Result<void> fits = app::check_log_request(options, *selection, *tasks);
  if (!fits) return fail(fits.error());
  if (tasks->size() > 1) return show_several(*reader, options, selection->run, *tasks);
  const std::string wrong = app::why_no_log(options, tasks->front());
  if (!wrong.empty()) return fail(wrong);
  return follow(*reader, options, selection->run, tasks->front());
}

/// The message for a wrong attempt number; empty for a right one.
std::string wrong_with_attempt(const std::string& word) {
  const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
  const bool some = word.find_first_not_of('0') != std::string::npos;
  if (digits && some && word.size() <= 6) return {};
  return fmt::format("'{}' is not an attempt number (1, 2, 3, ...)", word);
}

CLI::App* add_logs(CLI::App& app, LogsOptions& options) {
  CLI::App* logs = app.add_subcommand("logs", "Show the output of tasks");
  logs->group(command_groups::kWatch);
  add_selection(*logs, options.words, options.run_directory, kTasksNeededHelp);
  const auto of_output = [](CLI::Option* option) { return option->group(option_groups::kOutput); };
  of_output(logs->add_flag("--follow,-f", options.follow, "Follow the output until the task ends"));
  of_output(logs->add_option("--attempt", options.attempt, "Attempt number (default: the last)"))
      ->type_name(value_kinds::kNumber)
      ->check(wrong_with_attempt);
  of_output(logs->add_option("--rank", options.rank, "Only this rank of a task with ranks"))
      ->type_name(value_kinds::kNumber)
      ->check(whole_number_within(0, model::kRanksMax));
  of_output(logs->add_flag("--stdout", options.only_stdout,
                           "Only standard output (with --stderr: both)"));
  of_output(logs->add_flag("--stderr", options.only_stderr, "Only standard error"));
  logs->footer(
      std::string("Examples:\n"
                  "  trainyard logs lr=0.1,seed=2\n"
                  "  trainyard logs train/lr=0.1,seed=2 -f\n"
                  "  trainyard logs 46 lr=0.1,seed=2\n"
                  "  trainyard logs 46 :failed\n"
                  "  trainyard logs lr=0.1,seed=2 --attempt 1 --stderr\n"
                  "  trainyard logs lr=0.1,seed=2 --rank 3\n"
                  "\n") +
      kSelectionHelp +
      "\n"
      "In a run with several tasks, name a task. Progress bars that redraw a line are shown as\n"
      "their last state.");
  return logs;
}

}  // namespace

Entry logs_entry() { return entry({"logs"}, add_logs, logs_command); }

}  // namespace trainyard::cli
