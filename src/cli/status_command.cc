// `trainyard status`: a look at the journal, from any shell.
#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/find_run.h"
#include "io/clock.h"
#include "io/event_loop.h"
#include "io/files.h"
#include "io/terminal.h"
#include "journal/reader.h"
#include "report/sink.h"
#include "report/status.h"

namespace trainyard::cli {
namespace {

constexpr Duration kWatchEvery{1000};
/// Home, and erase what is below.
constexpr std::string_view kClear = "\x1b[H\x1b[2J";

Result<void> show_once(JournalReader& reader, const StatusOptions& options,
                       const report::StatusRequest& request, report::Sink& sink) {
  if (options.json) return report::write_status_json(reader, request, options.all, sink);
  const bool terminal = io::is_terminal(io::kStandardOutput);
  return report::write_status(reader, request,
                              {.width = terminal ? io::terminal_width(io::kStandardOutput) : 0,
                               .colour = io::takes_colour(io::kStandardOutput),
                               .all = options.all},
                              sink);
}

}  // namespace

ExitCode status_command(const StatusOptions& options) {
  const Result<std::string> run = find_run(options.run_directory);
  if (!run) return fail(run.error());
  Result<JournalReader> reader = open_run(*run);
  if (!reader) return fail(reader.error());
  // A program wants to find the place from wherever it is.
  const std::string named = options.json ? *run : seen_from_here(*run);
  io::EventLoop loop;
  bool watching = options.watch;
  if (watching) loop.watch_signals({SIGINT, SIGTERM}, [&](int) { watching = false; });
  while (true) {
    const bool lives = io::RunLock::holder(*run).has_value();
    // Drawn as a whole, so that it does not flicker.
    std::string text;
    report::Sink sink = [&](std::string_view piece) { text += piece; };
    const Result<void> shown = show_once(
        *reader, options,
        {.run_directory = named, .yard_lives = lives, .now_unix_ms = io::unix_milliseconds()},
        sink);
    if (!shown) return fail(shown.error());
    const bool redraw = options.watch && io::can_redraw(io::kStandardOutput);
    print(redraw ? std::string(kClear) + text : text);
    if (!watching || !lives) return ExitCode::Success;
    if (const Result<void> rested = reader->rest(); !rested) return fail(rested.error());
    const Duration next = io::EventLoop::now() + kWatchEvery;
    while (watching && io::EventLoop::now() < next) loop.run_once(next - io::EventLoop::now());
    if (const Result<void> fresh = reader->refresh(); !fresh) return fail(fresh.error());
  }
}

}  // namespace trainyard::cli
