// `trainyard replay`: plays runs again that were recorded.
#include <algorithm>
#include <cstdint>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/help_format.h"
#include "cli/known_runs.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"
#include "journal/recording.h"
#include "run/replay.h"
#include "run/run_directory.h"
#include "text/readable_json.h"

namespace trainyard::cli {
namespace {

using Row = journal::RecordingReader::Row;

double seconds_into(Instant at) { return static_cast<double>(at.since_start.count()) / 1000; }

std::string replay_json(const std::string& run, std::int64_t execution,
                        const run::Replayed& played) {
  nlohmann::ordered_json all{{"run", run},
                             {"execution", execution},
                             {"events", played.events},
                             {"starts", played.starts},
                             {"until_s", seconds_into(played.until)},
                             {"same", !played.difference},
                             {"difference", nullptr}};
  if (const auto& it = played.difference) {
    // The texts are as recorded, so that a program can compare them.
    all["difference"] = {{"event", it->event},
                         {"at_s", seconds_into(it->at)},
                         {"heard", it->heard},
                         {"decided_then", it->decided_then},
                         {"decided_now", it->decided_now}};
  }
  return text::readable_json(all);
}

std::string replay_text(const std::string& run, std::int64_t execution,
                        const run::Replayed& played) {
  if (const auto& it = played.difference) {
    return fmt::format(
        "execution {} of {}: at event {}, {:.1f} s after the run began, the scheduler decides "
        "otherwise than it did\n  heard         {}\n  decided then  {}\n  decides now   {}\n",
        execution, run, it->event, seconds_into(it->at), it->heard, it->decided_then,
        it->decided_now);
  }
  return fmt::format(
      "execution {} of {}: {} events until {:.1f} s, {} starts: the same decisions\n", execution,
      run, played.events, seconds_into(played.until), played.starts);
}

struct ReplayOptions {
  std::vector<std::string> runs;  ///< Empty: the active one here, else the latest.
  std::int64_t execution = 0;     ///< 0: the last one.
  bool events = false;
  bool json = false;
};

CLI::App* add_replay(CLI::App& app, ReplayOptions& options) {
  CLI::App* replay = app.add_subcommand("replay", "Replay the scheduler of recorded runs");
  replay
      ->add_option("run,--run-dir", options.runs,
                   "Run numbers, names, directories or job files\n"
                   "(default: the active run in ./runs, else the latest)")
      ->type_name(value_kinds::kRun)
      ->check(empty_run_error);
  replay
      ->add_option("--execution", options.execution,
                   "Execution of a resumed run (default: the last)")
      ->type_name(value_kinds::kNumber)
      ->check(CLI::PositiveNumber);
  replay->add_flag("--events", options.events, "Print each event and each decision on a line");
  add_json(*replay, options.json);
  replay->group(command_groups::kPlumbing);
  replay->footer(
      "Examples:\n"
      "  trainyard run sweep.yaml --set journal.record=full\n"
      "  trainyard replay\n"
      "  trainyard replay 46 --events | grep attempt_ended\n"
      "  trainyard replay 46 47\n"
      "\n"
      "A run with the setting journal.record=full records all events of its scheduler. Replay\n"
      "feeds them to a new scheduler and compares the decisions. No task runs.\n"
      "Exit codes: 0 same decisions, 1 different decisions, 2 the run was not recorded; of\n"
      "several runs the highest.");
  return replay;
}

ExitCode replay(const std::string& named, const ReplayOptions& options) {
  const Result<std::string> run = find_run(named);
  if (!run) return fail(run.error());
  Result<journal::RecordingReader> recording = journal::RecordingReader::open(
      run::journal_path(*run),
      options.execution > 0 ? std::optional(options.execution) : std::nullopt);
  const std::string shown = seen_from_here(*run);
  if (!recording) return fail(std::move(recording.error()).in(shown));
  Printer printer;
  const Result<run::Replayed> played =
      options.events ? run::replay(*recording,
                                   [&printer](const Row& row) {
                                     printer.print(row.event + '\n' + row.decision + '\n');
                                   })
                     : run::replay(*recording);
  if (!played) return fail(Error(played.error()).in(shown));
  const ExitCode code = played->difference ? ExitCode::TaskFailed : ExitCode::Success;
  const bool printed = print(options.json ? replay_json(shown, recording->execution(), *played)
                                          : replay_text(shown, recording->execution(), *played));
  return printed && printer.works() ? code : ExitCode::TaskFailed;
}

ExitCode replay_command(const ReplayOptions& options) {
  if (options.runs.empty()) return replay("", options);
  ExitCode highest = ExitCode::Success;
  for (const std::string& named : options.runs) highest = std::max(highest, replay(named, options));
  return highest;
}

}  // namespace

Entry replay_entry() { return entry({"replay"}, add_replay, replay_command); }

}  // namespace trainyard::cli
