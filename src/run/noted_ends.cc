#include "run/noted_ends.h"

#include <algorithm>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "journal/reader.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "run/attempt_end.h"
#include "run/run_directory.h"
#include "schedule/unwatched_end.h"
#include "sys/files.h"

namespace trainyard::run {
namespace {

/// The facts about an attempt from which its outcome is decided.
struct Known {
  const journal::TaskRow& row;
  const process::EndNote& note;
  bool end_tells = false;
};

journal::EarlierEnd earlier_end(const Known& known) {
  const process::EndNote& note = known.note;
  model::AttemptEnded ended = attempt_ended_from(
      note.ended, {.clock_offset = note.of.clock_offset, .on_gpus = !known.row.gpus.empty()});
  ended.key.task = {0};
  // The files in the sampled memory are not known any more, nor is a cap on its GPUs: its largest
  // process, and its use of the GPUs, teach nothing then.
  const MemoryPeak peak = memory_peak_of(
      note.ended, {.peak = known.row.memory_peak,
                   .others = {},
                   .alone = note.attempt.shares_memory || known.row.memory_peak > Bytes{}});
  ended.usage.memory_peak = peak.bytes;
  ended.usage.memory_at_least = peak.at_least;
  ended.usage.gpu_capped = !known.row.gpus.empty();
  ended.usage.cpu_time = std::max(ended.usage.cpu_time, known.row.cpu_time);
  model::Decision decision = schedule::decide_unwatched_end({.status = known.row.standing.status,
                                                             .stage = known.row.stage,
                                                             .message = known.row.message,
                                                             .attempt = known.row.attempt,
                                                             .two_phase = note.attempt.two_phase,
                                                             .ranks = note.attempt.ranks,
                                                             .its_end_tells = known.end_tells,
                                                             .told_to_end = note.told_to_end},
                                                            ended);
  const Instant at = ended.ended.value_or(Instant{});
  return {.task = note.attempt.journal_number,
          .attempt = known.row.attempt,
          .event = {.at = at, .what = std::move(ended)},
          .decision = std::move(decision)};
}

/// The tasks that run as far as the journal knows, by their numbers.
Result<std::map<std::uint32_t, journal::TaskRow>> running(journal::JournalReader& reader) {
  std::map<std::uint32_t, journal::TaskRow> rows;
  const Result<void> read = reader.tasks({.running = true}, [&rows](journal::TaskRow row) {
    if (!row.ended) rows.emplace(row.index.value, std::move(row));
    return true;
  });
  if (!read) return std::unexpected(read.error());
  return rows;
}

Result<std::vector<journal::EarlierEnd>> judge_all(const std::string& run_directory,
                                                   const std::vector<process::EndNote>& notes) {
  auto reader = journal::JournalReader::open(journal_path(run_directory));
  if (!reader) return std::unexpected(std::move(reader.error()));
  const auto executions = reader->executions();
  auto rows = running(*reader);
  if (!executions) return std::unexpected(executions.error());
  if (!rows) return std::unexpected(rows.error());
  std::vector<journal::EarlierEnd> ends;
  for (const process::EndNote& note : notes) {
    const auto row = rows->find(note.attempt.journal_number);
    const bool known = !executions->empty() && executions->back().number == note.of.execution &&
                       executions->back().started_unix_ms == note.of.started_unix_ms &&
                       row != rows->end() && row->second.attempt == note.ended.key.attempt;
    if (!known) continue;
    const Result<bool> tells =
        reader->its_end_tells({.task = row->second.index, .attempt = row->second.attempt});
    if (!tells) return std::unexpected(tells.error());
    ends.push_back(earlier_end({.row = row->second, .note = note, .end_tells = *tells}));
    // A keeper whose disk did not answer may have noted it twice.
    rows->erase(row);
  }
  return ends;
}

Result<std::vector<process::EndNote>> read_notes(const std::string& path) {
  const Result<std::optional<std::string>> text = sys::read_plain_file(
      path, Bytes{static_cast<std::int64_t>(process::kEndNotesMax)}, sys::Links::Refuse);
  if (!text) return std::unexpected(text.error());
  return process::read_end_notes(text->value_or(std::string()));
}

}  // namespace

std::vector<process::EndNote> notes_of(const process::EndNotes& execution) {
  std::vector<process::EndNote> notes =
      read_notes(execution.path).value_or(std::vector<process::EndNote>());
  std::erase_if(notes, [&execution](const process::EndNote& note) {
    return note.of.execution != execution.execution ||
           note.of.started_unix_ms != execution.started_unix_ms;
  });
  return notes;
}

NotedEnds noted_ends(const std::string& run_directory) {
  const Result<std::vector<process::EndNote>> notes = read_notes(ends_path(run_directory));
  if (!notes) return {.ends = {}, .trouble = notes.error().message};
  if (notes->empty()) return {};
  Result<std::vector<journal::EarlierEnd>> ends = judge_all(run_directory, *notes);
  if (!ends) return {.ends = {}, .trouble = std::move(ends.error().message)};
  return {.ends = std::move(*ends), .trouble = {}};
}

void remove_noted_ends(const std::string& run_directory) {
  std::error_code ignored;
  std::filesystem::remove(ends_path(run_directory), ignored);
}

std::vector<std::string> lines_about_ends(const journal::EarlierEndCounts& counts) {
  std::vector<std::string> lines;
  if (counts.own == 1) {
    lines.emplace_back("1 task ended after trainyard had died; its outcome is recorded");
  } else if (counts.own > 1) {
    lines.push_back(fmt::format(
        "{} tasks ended after trainyard had died; their outcomes are recorded", counts.own));
  }
  if (counts.stopped == 1) {
    lines.emplace_back("1 task was running when trainyard died, and was killed: it runs again");
  } else if (counts.stopped > 1) {
    lines.push_back(
        fmt::format("{} tasks were running when trainyard died, and were killed: they run again",
                    counts.stopped));
  }
  return lines;
}

}  // namespace trainyard::run
