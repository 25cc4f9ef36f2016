#include "app/living_runs.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/duration_text.h"
#include "base/list_text.h"
#include "base/time.h"
#include "model/waiting.h"
#include "report/terminal_text.h"
#include "text/readable_json.h"
#include "text/shell_quote.h"

namespace trainyard::app {
namespace {

/// `status` shows a submission that did not start for this time, and this number of them.
constexpr Duration kListedFor{24 * 3'600'000};
constexpr std::ptrdiff_t kEndedShown = 20;

/// "8 runs before it wait for room: 2 to 9 (GPU, memory)", with their missing resources; or empty.
std::string held_back_by(const queue::QueuedSubmission& submission,
                         const std::vector<queue::RunWithoutRoom>& without_room) {
  std::vector<std::uint32_t> numbers;
  std::set<std::string_view> lacks;
  for (const queue::RunWithoutRoom& run : without_room) {
    if (!queue::holds_back(run, submission)) continue;
    numbers.push_back(run.submission.number);
    if (run.need.cause == model::Cause::Gpus) lacks.insert("GPU");
    if (run.need.cause == model::Cause::Memory) lacks.insert("memory");
    if (queue::lacks_cpus(run.need.cause)) lacks.insert("CPUs");
  }
  if (numbers.empty()) return {};
  const bool is_one = numbers.size() == 1;
  return fmt::format("{} run{} before it wait{} for room: {}{}", numbers.size(), is_one ? "" : "s",
                     is_one ? "s" : "", ranges_of(numbers),
                     lacks.empty() ? "" : fmt::format(" ({})", fmt::join(lacks, ", ")));
}

bool did_not_start(const LivingRun& run) { return run.no_start.has_value(); }

std::string state_word_of(const LivingRun& run) {
  if (run.no_start == queue::NoStart::NotNeeded) return "NOT_NEEDED";
  if (run.no_start == queue::NoStart::Skipped) return "SKIPPED";
  if (run.no_start) return "REFUSED";
  if (run.is_given_up) return "INCOMPLETE";
  if (run.is_queued) return "QUEUED";
  if (run.is_suspended) return "SUSPENDED";
  if (run.is_stopping) return "STOPPING";
  return run.running > 0 ? "RUNNING" : "WAITING";
}

Duration pause_left(const queue::IncompleteRun& run, std::int64_t now_unix_ms) {
  return Duration{std::max<std::int64_t>(run.resumes_unix_ms - now_unix_ms, 0)};
}

std::string progress_of(const LivingRun& run) {
  if (run.is_queued) return run.reason;
  if (run.tasks == 0) return "starting";
  std::string text = fmt::format("{} of {} finished", run.finished, run.tasks);
  if (run.running > 0) text += fmt::format(", {} running", run.running);
  if (run.failed > 0) text += fmt::format(", {} failed", run.failed);
  return text;
}

}  // namespace

std::string why_waiting(const QueueView& queue, std::size_t place, const queue::FateOf& fate_of) {
  if (!queue.idle.empty()) return queue.idle;
  const queue::QueuedSubmission& submission = queue.waiting.at(place);
  std::vector<std::uint32_t> needs;
  std::ranges::copy_if(submission.needs, std::back_inserter(needs), [&](std::uint32_t needed) {
    return fate_of(needed) == queue::Fate::NotEnded;
  });
  if (!needs.empty()) {
    return fmt::format("waits for run{} {}", needs.size() == 1 ? "" : "s", fmt::join(needs, ", "));
  }
  if (std::string why = held_back_by(submission, queue.without_room); !why.empty()) return why;
  if (place > 0) {
    return fmt::format("behind {} other run{} in the queue", place, place == 1 ? "" : "s");
  }
  if (queue.blocking == 0) return "waits for the queue to start it";
  return fmt::format("waits until run {} can start", queue.blocking);
}

std::string why_paused(const queue::IncompleteRun& run, std::int64_t now_unix_ms) {
  return fmt::format("{} in {}: {}", run.began ? "resumes" : "starts",
                     to_text(pause_left(run, now_unix_ms)), run.why);
}

std::string how_resumed(const queue::IncompleteRun& run, std::int64_t now_unix_ms) {
  return fmt::format("your queue resumes it in {} ({})", to_text(pause_left(run, now_unix_ms)),
                     run.why);
}

queue::RoomNeed room_need(const std::vector<journal::WaitingReason>& reasons) {
  queue::RoomNeed need;
  for (const journal::WaitingReason& each : reasons) {
    if (!queue::waits_for_room(each.cause)) continue;
    need = queue::joined(need, {.cause = each.cause, .memory = each.memory, .cpus = each.cpus});
  }
  return need;
}

std::optional<LivingRun> row_of_end(const queue::EndedSubmission& ended, std::int64_t now_unix_ms,
                                    const std::function<EndedDirectory()>& look) {
  LivingRun row{.number = ended.number,
                .directory = ended.run_directory,
                .is_queued = true,
                .reason = ended.why,
                .no_start = ended.no_start};
  if (!ended.no_start) {
    // Only the end of a run that the queue has given up says why.
    if (ended.why.empty()) return std::nullopt;
    EndedDirectory directory = look();
    if (directory.is_active || !directory.is_its_own || !directory.has_journal) return std::nullopt;
    row.reason += fmt::format(
        ": {} resumes it",
        text::quoted_command("trainyard run --resume " + text::shell_word(directory.shown)));
    row.shown = std::move(directory.shown);
    row.is_given_up = true;
    return row;
  }
  if (ended.no_start == queue::NoStart::Removed) return std::nullopt;
  if (ended.ended_unix_ms <= now_unix_ms - kListedFor.count()) return std::nullopt;
  EndedDirectory directory = look();
  const bool has_run = directory.has_journal && !ended.runs_again;
  if (ended.no_start != queue::NoStart::DirectoryGone &&
      (!directory.has_submission || has_run || !directory.is_its_own)) {
    return std::nullopt;
  }
  row.shown = std::move(directory.shown);
  return row;
}

std::string living_text(const std::vector<LivingRun>& all, const LivingTextOptions& options) {
  const std::ptrdiff_t more =
      std::max<std::ptrdiff_t>(0, std::ranges::count_if(all, did_not_start) - kEndedShown);
  std::ptrdiff_t not_shown = more;
  std::vector<LivingRun> runs;
  std::ranges::copy_if(all, std::back_inserter(runs), [&not_shown](const LivingRun& run) {
    return !did_not_start(run) || not_shown-- <= 0;
  });
  if (runs.empty()) return "you have no active runs on this machine\n";
  std::size_t state = 0;
  int done = 0;
  int longest = 0;
  std::size_t number = std::string_view("RUN").size();
  for (const LivingRun& run : runs) {
    state = std::max(state, state_word_of(run).size());
    done = std::max(done, report::columns_of(progress_of(run)));
    longest = std::max(longest, report::columns_of(run.shown));
    number = std::max(number, std::to_string(run.number).size());
  }
  // In a narrow terminal, what the tasks do is shortened first, then the directories.
  constexpr int kGaps = 6;
  constexpr int kShortest = 16;
  int directory = longest;
  if (options.width > 0) {
    const int room = options.width - static_cast<int>(number + state) - kGaps;
    done = std::min(done, std::max(kShortest, room - longest));
    directory = std::max(kShortest, room - done);
  }
  std::string text = fmt::format("{:>{}}  {:>{}}  {:<{}}  DIRECTORY\n", "RUN", number, "STATE",
                                 state, "TASKS", done);
  for (const LivingRun& run : runs) {
    text += fmt::format("{:>{}}  {:>{}}  {}  {}\n", run.number, number, state_word_of(run), state,
                        report::pad_right(report::cut(progress_of(run), done), done),
                        report::cut(run.shown, directory));
  }
  if (more > 0) text += fmt::format("and {} more that did not start\n", more);
  if (!std::ranges::any_of(runs, did_not_start)) return text;
  text += "runs that did not start are listed for a day";
  const auto cleanable = std::ranges::find_if(runs, [&options](const LivingRun& run) {
    return did_not_start(run) && options.is_cleanable && options.is_cleanable(run);
  });
  if (cleanable != runs.end()) {
    text += fmt::format(": 'trainyard clean {0}' removes run {0}", cleanable->number);
  }
  return text + "\n";
}

std::string living_json(const std::vector<LivingRun>& runs) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const LivingRun& run : runs) {
    nlohmann::ordered_json row;
    row["run_number"] = run.number;
    row["run_directory"] = run.directory;
    row["word"] = state_word_of(run);
    row["reason"] = nullptr;
    if (!run.reason.empty()) row["reason"] = run.reason;
    row["tasks"] = run.tasks;
    row["finished"] = run.finished;
    row["failed"] = run.failed;
    row["running"] = run.running;
    rows.push_back(std::move(row));
  }
  nlohmann::ordered_json all;
  all["runs"] = std::move(rows);
  return text::readable_json(all);
}

std::string living_page(const std::vector<LivingRun>& runs, const std::string& lesser_limits,
                        const LivingTextOptions& options) {
  std::string text = living_text(runs, options);
  if (runs.empty()) {
    text +=
        "to list ended runs, type 'trainyard clean --older 0s --dry-run' where they were started\n";
  }
  if (!lesser_limits.empty()) text += fmt::format("\n{}\n", lesser_limits);
  return text;
}

std::string other_runs_text(std::vector<LivingRun> runs, const std::string& shown,
                            const LivingTextOptions& options) {
  std::erase_if(runs, [&shown](const LivingRun& run) { return run.directory == shown; });
  return runs.empty() ? "" : "\nyour other runs:\n" + living_text(runs, options);
}

}  // namespace trainyard::app
