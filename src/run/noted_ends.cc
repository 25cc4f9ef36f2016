#include "run/noted_ends.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <filesystem>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <system_error>
#include <utility>

#include <sys/stat.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/list_text.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "process/process_table.h"
#include "run/attempt_end.h"
#include "run/run_directory.h"
#include "schedule/ending.h"
#include "sys/clock.h"
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
                                                             .told_to_end = note.ended.told_to_end},
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
  // An end may have been noted before all processes of its attempt were gone, and once more then.
  for (const process::EndNote& note : notes | std::views::reverse) {
    const auto row = rows->find(note.attempt.journal_number);
    const bool known = !executions->empty() && executions->back().number == note.of.execution &&
                       executions->back().started_unix_ms == note.of.started_unix_ms &&
                       row != rows->end() && row->second.attempt == note.ended.key.attempt;
    if (!known) continue;
    const Result<bool> tells =
        reader->its_end_tells({.task = row->second.index, .attempt = row->second.attempt});
    if (!tells) return std::unexpected(tells.error());
    ends.push_back(earlier_end({.row = row->second, .note = note, .end_tells = *tells}));
    rows->erase(row);
  }
  std::ranges::reverse(ends);
  return ends;
}

Result<std::vector<process::EndNote>> read_notes(const std::string& path) {
  const Result<std::optional<std::string>> text = sys::read_plain_file(
      path, Bytes{static_cast<std::int64_t>(process::kEndNotesMax)}, sys::Links::Refuse);
  if (!text) return std::unexpected(text.error());
  return process::read_end_notes(text->value_or(std::string()));
}

/// The error names as many task directories as a user reads.
constexpr std::size_t kNamesMax = 3;

/// The content of directories. A run may have many tasks that have not started, which have no
/// directory of their own: they cost no look each.
class Listing {
 public:
  bool has(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const auto [directory, is_new] = names_.try_emplace(path.substr(0, slash));
    if (is_new) {
      std::vector<std::string> names = sys::names_in(directory->first);
      directory->second = {names.begin(), names.end()};
    }
    return directory->second.contains(path.substr(slash + 1));
  }

 private:
  std::map<std::string, std::set<std::string>> names_;
};

bool is_written_since(const std::string& path, std::int64_t unix_ms) {
  struct stat about{};
  return ::lstat(path.c_str(), &about) == 0 && about.st_mtim.tv_sec * 1'000 >= unix_ms;
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

Result<void> check_attempts_are_known(const std::string& run_directory) {
  auto reader = journal::JournalReader::open(journal_path(run_directory));
  if (!reader) return {};
  const auto tasks = reader->unfinished_places();
  if (!tasks) return {};
  const std::int64_t booted = sys::unix_milliseconds() - sys::boot_clock().count();
  Listing listing;
  std::vector<std::string> unknown;
  for (const journal::TaskPlace& task : *tasks) {
    const std::string directory = run_directory + "/" + task.directory;
    const std::string log = directory + "/" + log_name("stdout", task.attempt + 1);
    if (listing.has(directory) && is_written_since(log, booted)) unknown.push_back(task.directory);
  }
  if (unknown.empty()) return {};
  const std::size_t others = unknown.size() - std::min(unknown.size(), kNamesMax);
  unknown.resize(unknown.size() - others);
  if (others > 0) {
    unknown.push_back(
        fmt::format("{} more task {}", others, others == 1 ? "directory" : "directories"));
  }
  return std::unexpected(Error{fmt::format(
      "the journal of '{}' does not contain the last attempts of its tasks, whose logs are in {}: "
      "journal.db-wal is missing or damaged. Put it back, or move these directories away to run "
      "the tasks again",
      run_directory, list_text(unknown))});
}

std::vector<std::int64_t> processes_left(const std::string& run_directory,
                                         const journal::ExecutionRow& last) {
  if (last.ended || last.host != sys::host_name()) return {};
  return process::processes_left({.mark = mark_of(real_directory(run_directory)),
                                  .user = process::user_of_run(run_directory)});
}

}  // namespace trainyard::run
