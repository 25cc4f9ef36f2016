#include "run/noted_ends.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/match.h"
#include "base/result.h"
#include "base/time.h"
#include "journal/earlier_ends.h"
#include "journal/reader.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/status.h"
#include "process/end_notes.h"
#include "run/attempt_end.h"
#include "run/run_directory.h"
#include "schedule/ending.h"
#include "sys/files.h"

namespace trainyard::run {
namespace {

/// What is not its own doing is told in the words of the one who goes on.
std::string how_it_ended(const model::End& end) {
  const std::string how = match(
      end, [](const model::ExitedWith& it) { return fmt::format("exit code {}", it.code); },
      [](const model::KilledBy& it) { return schedule::signal_name(it.signal); },
      [](const auto& it) { return it.why; });
  return fmt::format("the yard died while it ran; it was told to end then, and did with {}", how);
}

/// What it had said last of itself, as far as its status in the journal shows that.
std::optional<schedule::LastWord> word_of(const journal::TaskRow& row) {
  if (row.standing.status == Status::Finished) {
    return schedule::LastWord{.said = model::Said::Trained, .message = {}};
  }
  if (row.standing.status != Status::Unknown) return std::nullopt;
  return schedule::LastWord{.said = model::Said::Nonsense, .message = row.message};
}

/// What is known of an attempt when it is judged.
struct Known {
  const journal::TaskRow& row;
  const process::EndNote& note;
  bool end_tells = false;
};

/// As schedule/state.cc does where nothing but the end itself is left to go by.
schedule::Ending judge(const Known& known, const model::AttemptEnded& ended) {
  const bool well = ended.end == model::End(model::ExitedWith{0});
  // Its work is done, whatever it was told meanwhile, and who leaves a result has trained for it:
  // nobody was there to hear that said.
  const bool done = well && !ended.result.empty();
  const bool told = known.note.told_to_end && !done;
  const schedule::StopCause cause =
      told ? schedule::StopCause::Interrupt : schedule::StopCause::None;
  const bool trains = known.row.standing.status == Status::Training;
  const std::optional<schedule::LastWord> word = word_of(known.row);
  schedule::Ending ending = known.note.attempt.two_phase
                                ? schedule::judge_two_phase(ended.end, cause, Duration{0}, word,
                                                            known.end_tells || (done && trains))
                                : schedule::judge(ended.end, cause, Duration{0});
  if (ending.verdict == model::Verdict::Stopped) ending.message = how_it_ended(ended.end);
  const bool by_itself =
      ending.failure == model::Failure::Exit || ending.failure == model::Failure::Killed;
  if (by_itself && !told && !word && !ended.out_of_memory.empty()) {
    ending = {.verdict = model::Verdict::Failed,
              .failure = model::Failure::OutOfMemory,
              .message = ended.out_of_memory};
  }
  if (!told) schedule::add_last_words(ending, ended.last_words);
  const schedule::RankWords words =
      schedule::rank_words(ended.ranks, ending, known.note.attempt.ranks);
  ending.message = (word ? std::string() : words.before) + ending.message + words.after;
  return ending;
}

model::Decision decision_of(const Known& known, schedule::Ending ending) {
  const model::AttemptKey key{.task = {0}, .attempt = known.row.attempt};
  const Status before = known.row.standing.status;
  model::Decision decision;
  const auto enter = [&](Status status) {
    decision.changes.emplace_back(model::TaskChanged{.key = key, .status = status});
  };
  const bool began = !std::holds_alternative<model::NotStarted>(known.note.ended.end);
  if (began && before == Status::Available && !known.note.attempt.two_phase) {
    enter(Status::Training);
  }
  const bool finished = ending.verdict == model::Verdict::Finished;
  if (finished && before != Status::Finished) enter(Status::Finished);
  const bool stopped = ending.verdict == model::Verdict::Stopped;
  decision.changes.emplace_back(model::TaskChanged{.key = key,
                                                   .status = finished  ? Status::Exited
                                                             : stopped ? Status::Interrupt
                                                                       : Status::Exception,
                                                   .verdict = ending.verdict,
                                                   .failure = ending.failure,
                                                   .stage = known.row.stage,
                                                   .exit_code = ending.exit_code,
                                                   .message = std::move(ending.message)});
  return decision;
}

journal::EarlierEnd earlier_end(const Known& known) {
  const process::EndNote& note = known.note;
  model::AttemptEnded ended = attempt_ended_from(
      note.ended, {.clock_offset = note.of.clock_offset, .on_gpus = !known.row.gpus.empty()});
  ended.key.task = {0};
  // What files were in the memory that was sampled is not known any more, nor whether it was kept
  // from taking more of its GPUs: the largest process and what it had of them teach nothing then.
  const MemoryPeak peak = memory_peak_of(
      note.ended, {.peak = known.row.memory_peak,
                   .others = {},
                   .alone = note.attempt.shares_memory || known.row.memory_peak > Bytes{}});
  ended.usage.memory_peak = peak.bytes;
  ended.usage.memory_at_least = peak.at_least;
  ended.usage.gpu_capped = !known.row.gpus.empty();
  ended.usage.cpu_time = std::max(ended.usage.cpu_time, known.row.cpu_time);
  model::Decision decision = decision_of(known, judge(known, ended));
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
  const auto rows = running(*reader);
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
  }
  return ends;
}

}  // namespace

NotedEnds noted_ends(const std::string& run_directory) {
  const std::string path = ends_path(run_directory);
  const Result<std::optional<std::string>> text = sys::read_plain_file(
      path, Bytes{static_cast<std::int64_t>(process::kEndNotesMax)}, sys::Links::Refuse);
  if (!text) return {.ends = {}, .trouble = text.error().message};
  if (!*text) return {};
  Result<std::vector<journal::EarlierEnd>> ends =
      judge_all(run_directory, process::read_end_notes(**text));
  if (!ends) return {.ends = {}, .trouble = std::move(ends.error().message)};
  return {.ends = std::move(*ends), .trouble = {}};
}

void remove_noted_ends(const std::string& run_directory) {
  std::error_code ignored;
  std::filesystem::remove(ends_path(run_directory), ignored);
}

std::string told_of_ends(int count) {
  if (count == 0) return {};
  return fmt::format("{} ended after the yard had died: that is counted",
                     count == 1 ? "1 task" : fmt::format("{} tasks", count));
}

}  // namespace trainyard::run
