// `trainyard logs`: what a task wrote, once or for as long as it runs.
#include <algorithm>
#include <csignal>
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
#include "cli/find_task.h"
#include "cli/run_place.h"
#include "io/event_loop.h"
#include "io/files.h"
#include "io/tail.h"
#include "io/terminal.h"
#include "journal/reader.h"
#include "model/status.h"
#include "report/log_text.h"
#include "report/places.h"

namespace trainyard::cli {
namespace {

constexpr Duration kLookEvery{200};

/// Two files as one stream, with a heading where it changes from one to the other, as tail(1) does.
class Streams {
 public:
  Streams(std::vector<std::string> paths, bool raw) : raw_(raw), headings_(paths.size() > 1) {
    for (std::string& path : paths)
      streams_.push_back({.file = io::Tail(std::move(path)), .fold = {}});
  }

  /// Prints all that is new. An error is that of a file that is there and cannot be read.
  Result<void> print_new() {
    for (Stream& stream : streams_) {
      while (true) {
        Result<std::string> piece = stream.file.read_more();
        if (!piece) return std::unexpected(std::move(piece.error()));
        if (piece->empty()) break;
        show(stream, raw_ ? *piece : stream.fold.feed(*piece));
      }
    }
    return {};
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
  const Stream* shown_ = nullptr;
};

std::vector<std::string> paths_of(const LogsOptions& options, const std::string& run,
                                  const TaskRow& task) {
  const auto attempt = options.attempt > 0 ? static_cast<std::uint32_t>(options.attempt)
                                           : std::max(task.attempt, 1U);
  const std::string directory =
      run + "/" + report::task_directory_of(task, report::grouping_of(run, task)) + "/";
  std::vector<std::string> paths;
  if (!options.only_stderr) paths.push_back(directory + report::log_name("stdout", attempt));
  if (!options.only_stdout) paths.push_back(directory + report::log_name("stderr", attempt));
  return paths;
}

/// Whether there is more to come from the attempt that is followed.
Result<bool> goes_on(JournalReader& reader, const std::string& run, const TaskRow& task) {
  if (const Result<void> fresh = reader.refresh(); !fresh) return std::unexpected(fresh.error());
  const Result<std::optional<TaskRow>> now = reader.find(task.group_name, task.id);
  if (!now) return std::unexpected(now.error());
  const bool same = now->has_value() && (*now)->attempt == task.attempt;
  return same && (*now)->standing.verdict == Verdict::None && io::RunLock::holder(run).has_value();
}

}  // namespace

ExitCode logs_command(const LogsOptions& options) {
  const Result<std::string> run = find_run(options.run_directory);
  if (!run) return fail(run.error());
  Result<JournalReader> reader = JournalReader::open(journal_path(*run));
  if (!reader) return fail(reader.error());
  const Result<TaskRow> task = find_task(*reader, options.task);
  if (!task) return fail(task.error());
  const auto attempt = static_cast<std::uint32_t>(options.attempt);
  if (attempt > task->attempt || (task->attempt == 0 && !options.follow)) {
    return fail(
        task->attempt == 0
            ? fmt::format("{}/{} has not been started", task->group_name, task->id)
            : fmt::format("{}/{} has had {} attempts", task->group_name, task->id, task->attempt));
  }
  // To a terminal, a progress bar that is followed may go on drawing over itself.
  Streams streams(paths_of(options, *run, *task),
                  options.follow && io::is_terminal(io::kStandardOutput));
  io::EventLoop loop;
  bool following = options.follow;
  if (following) loop.watch_signals({SIGINT, SIGTERM}, [&](int) { following = false; });
  while (following) {
    const Result<bool> more = goes_on(*reader, *run, *task);
    if (!more) return fail(more.error());
    if (const Result<void> shown = streams.print_new(); !shown) return fail(shown.error());
    if (!*more) break;
    const Duration next = io::EventLoop::now() + kLookEvery;
    while (following && io::EventLoop::now() < next) loop.run_once(next - io::EventLoop::now());
  }
  if (const Result<void> shown = streams.print_new(); !shown) return fail(shown.error());
  streams.finish();
  return ExitCode::Success;
}

}  // namespace trainyard::cli
