// `trainyard logs`: what a task wrote, once or for as long as it runs.
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

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/find_run.h"
#include "cli/find_task.h"
#include "io/event_loop.h"
#include "io/files.h"
#include "io/tail.h"
#include "io/terminal.h"
#include "journal/reader.h"
#include "model/status.h"
#include "report/log_text.h"
#include "report/places.h"
#include "report/terminal_text.h"

namespace trainyard::cli {
namespace {

constexpr Duration kLookEvery{200};

/// Two files as one stream, with a heading where it changes from one to the other, as tail(1) does.
class Streams {
 public:
  Streams(std::vector<std::string> paths, bool raw, bool headings)
      : raw_(raw), headings_(headings || paths.size() > 1) {
    for (std::string& path : paths)
      streams_.push_back({.file = io::Tail(std::move(path)), .fold = {}});
  }

  /// Begins with what there is now: one file after the other, so that none of them waits for
  /// another one that grows as fast as it is printed.
  void begin_round() {
    for (Stream& stream : streams_) stream.file.stop_at_present();
    place_ = 0;
  }

  /// Prints one piece of it; false when there is no more. An error is that of a file that is there
  /// and cannot be read.
  Result<bool> print_piece() {
    while (place_ < streams_.size()) {
      Stream& stream = streams_[place_];
      Result<std::string> piece = stream.file.read_more();
      if (!piece) return std::unexpected(std::move(piece.error()));
      if (!piece->empty()) {
        show(stream, raw_ ? *piece : stream.fold.feed(*piece));
        return true;
      }
      ++place_;
    }
    return false;
  }

  void finish() {
    for (Stream& stream : streams_) show(stream, stream.fold.finish());
  }

 private:
  struct Stream {
    io::Tail file;
    report::CarriageFolder fold;
  };

  void show(const Stream& stream, std::string_view text) {
    if (text.empty()) return;
    if (headings_ && shown_ != &stream) {
      print(fmt::format("{}==> {} <==\n", shown_ == nullptr ? "" : "\n", stream.file.path()));
    }
    shown_ = &stream;
    print(text);
  }

  bool raw_;
  bool headings_;
  std::vector<Stream> streams_;
  std::size_t place_ = 0;  ///< Of the stream that is printed in this round.
  const Stream* shown_ = nullptr;
};

/// Shows the logs of one attempt after the other.
class Follower {
 public:
  /// Between two pieces it is asked whether to go on.
  using GoesOn = std::move_only_function<bool()>;

  Follower(JournalReader& reader, const LogsOptions& options, std::string run, TaskRow task,
           GoesOn goes_on)
      : reader_(reader),
        options_(options),
        goes_on_(std::move(goes_on)),
        run_(std::move(run)),
        task_(std::move(task)),
        attempt_(wanted()),
        streams_(streams(false)) {}

  /// Prints what is new. False when no more can come.
  Result<bool> step() {
    // Looked at first: whatever an attempt wrote before its end was seen is then still printed.
    const Result<bool> more = look();
    if (!more) return more;
    if (const Result<void> shown = print_round(); !shown) return std::unexpected(shown.error());
    if (wanted() == attempt_) return more;
    streams_.finish();
    attempt_ = wanted();
    streams_ = streams(true);
    return true;
  }

  Result<void> finish() {
    const Result<void> shown = print_round();
    if (shown) streams_.finish();
    return shown;
  }

 private:
  /// Prints what there is now, unless it is told to stop.
  Result<void> print_round() {
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

  [[nodiscard]] Streams streams(bool headings) const {
    const std::string directory =
        run_ + "/" + report::task_directory_of(task_, report::grouping_of(run_, task_)) + "/";
    std::vector<std::string> paths;
    const bool both = options_.only_stdout == options_.only_stderr;
    if (both || options_.only_stdout)
      paths.push_back(directory + report::log_name("stdout", attempt_));
    if (both || options_.only_stderr)
      paths.push_back(directory + report::log_name("stderr", attempt_));
    // To a terminal, a progress bar that is followed may go on drawing over itself.
    const bool raw = options_.follow && io::can_redraw(io::kStandardOutput);
    return {std::move(paths), raw, headings};
  }

  /// Whether there is more to come from the attempts that are followed.
  Result<bool> look() {
    if (const Result<void> fresh = reader_.refresh(); !fresh) return std::unexpected(fresh.error());
    Result<std::optional<TaskRow>> now = reader_.find(task_.group_name, task_.id);
    if (!now) return std::unexpected(std::move(now.error()));
    if (const Result<void> rested = reader_.rest(); !rested) return std::unexpected(rested.error());
    std::optional<TaskRow>& row = *now;
    if (!row) return false;
    task_ = std::move(*row);
    return task_.attempt <= wanted() && task_.standing.verdict == Verdict::None &&
           io::RunLock::holder(run_).has_value();
  }

  JournalReader& reader_;
  const LogsOptions& options_;
  GoesOn goes_on_;
  std::string run_;
  TaskRow task_;
  std::uint32_t attempt_;
  Streams streams_;
};

}  // namespace

ExitCode logs_command(const LogsOptions& options) {
  const Result<std::string> run = find_run(options.run_directory);
  if (!run) return fail(run.error());
  Result<JournalReader> reader = open_run(*run);
  if (!reader) return fail(reader.error());
  const Result<TaskRow> task = find_task(*reader, options.task);
  if (!task) return fail(task.error());
  const auto attempt = static_cast<std::uint32_t>(options.attempt);
  if (attempt > task->attempt || (task->attempt == 0 && !options.follow)) {
    return fail(task->attempt == 0
                    ? fmt::format("{}/{} has not been started", task->group_name, task->id)
                    : fmt::format("{}/{} has had {}", task->group_name, task->id,
                                  report::counted(task->attempt, "attempt")));
  }
  io::EventLoop loop;
  bool following = options.follow;
  bool ended = false;
  // Without -f a signal ends us as it ends anybody, also while a full pipe holds us up.
  if (following) {
    loop.watch_signals({SIGINT, SIGTERM}, [&](int) {
      following = false;
      ended = true;
    });
  }
  Follower follower(*reader, options, *run, *task, [&] {
    loop.run_once(Duration{0});
    return !ended;
  });
  while (following) {
    const Result<bool> more = follower.step();
    if (!more) return fail(more.error());
    if (!*more) break;
    const Duration next = io::EventLoop::now() + kLookEvery;
    while (following && io::EventLoop::now() < next) loop.run_once(next - io::EventLoop::now());
  }
  if (const Result<void> shown = follower.finish(); !shown) return fail(shown.error());
  return ExitCode::Success;
}

}  // namespace trainyard::cli
