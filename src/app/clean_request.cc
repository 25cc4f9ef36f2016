#include "app/clean_request.h"

#include <algorithm>
#include <expected>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "report/terminal_text.h"
#include "text/readable_json.h"

namespace trainyard::app {
namespace {

std::string cleaned_line(const run::CleanOptions& options, const CleanedRun& run,
                         std::int64_t now_unix_ms) {
  const run::Cleaned& cleaned = run.cleaned;
  const Duration age{std::max<std::int64_t>(0, now_unix_ms - run.ended_unix_ms)};
  const std::string what = fmt::format("{}, ended {} ago", run.run.name(), to_text(age));
  const bool is_whole = cleaned.failed.empty();
  if (cleaned.entries == 0 && !cleaned.is_gone && is_whole) {
    return fmt::format("nothing to delete in {}\n", what);
  }
  const bool others_stay =
      !options.keeps_some() && !cleaned.is_gone && !options.only_look && is_whole;
  return fmt::format("{} {}{}: {}{}\n", options.only_look ? "would delete" : "deleted",
                     options.keeps_some() ? "files of "
                     : is_whole           ? ""
                                          : "part of ",
                     what, to_text(cleaned.bytes), others_stay ? "; other files there stay" : "");
}

}  // namespace

Result<CleanRequest> read_clean_request(const CleanWords& words) {
  const auto refuse = [](std::string why) { return std::unexpected(Error{std::move(why)}); };
  CleanRequest request{.options = {.only_look = words.dry_run}};
  if (!words.older.empty()) {
    const Result<Duration> older = parse_duration(words.older);
    // Seconds or minutes, which parse_duration() proposes, would select almost all runs.
    if (!older && parse_duration(words.older + "d")) {
      return refuse(
          fmt::format("--older: '{0}' has no unit (did you mean '{0}d' or '{0}h'?)", words.older));
    }
    if (!older) return refuse(fmt::format("--older: {}", older.error().message));
    request.older = *older;
  }
  if (!request.older && words.runs.empty()) {
    return refuse(
        "no run named: type 'trainyard clean 46', or 'trainyard clean --older 30d --dry-run'");
  }
  for (const std::string& kept : words.keep) {
    if (kept != "results" && kept != "logs") {
      return refuse(fmt::format("--keep: must be results or logs, not '{}'", kept));
    }
    (kept == "results" ? request.options.keep_results : request.options.keep_logs) = true;
  }
  return request;
}

std::string clean_text(const run::CleanOptions& options, const CleanOutcome& outcome,
                       std::int64_t now_unix_ms) {
  std::string text;
  Bytes bytes;
  std::int64_t done = 0;
  for (const CleanedRun& run : outcome.runs) {
    if (!run.is_done) continue;
    ++done;
    bytes += run.cleaned.bytes;
    text += cleaned_line(options, run, now_unix_ms);
  }
  if (done == 0 && !outcome.failed) {
    return outcome.some_ended ? "no run ended that long ago\n" : "no run here has ended\n";
  }
  return text + fmt::format("{}, {}{}\n", report::counted(done, "run"), to_text(bytes),
                            options.keeps_some() ? ", not counting the kept files" : "");
}

std::string clean_json(const CleanWords& words, const CleanOutcome& outcome) {
  Bytes bytes;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const CleanedRun& run : outcome.runs) {
    nlohmann::ordered_json row;
    row["run_directory"] = run.run.directory;
    row["run_number"] = nullptr;
    if (run.run.number != 0) row["run_number"] = run.run.number;
    row["ended_unix_ms"] = run.ended_unix_ms;
    row["bytes"] = run.cleaned.bytes.count;
    row["is_gone"] = run.cleaned.is_gone;
    row["failed"] = run.cleaned.failed;
    rows.push_back(std::move(row));
    bytes += run.cleaned.bytes;
  }
  nlohmann::ordered_json all;
  all["dry_run"] = words.dry_run;
  all["keeps"] = words.keep;
  all["bytes"] = bytes.count;
  all["runs"] = std::move(rows);
  return text::readable_json(all);
}

}  // namespace trainyard::app
