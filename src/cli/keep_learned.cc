#include "cli/keep_learned.h"

#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "config/learned.h"
#include "io/files.h"
#include "journal/place.h"
#include "journal/reader.h"
#include "model/status.h"

namespace trainyard::cli {
namespace {

/// A task that trains for less says nothing of the next one.
constexpr Duration kWorthIt{1'000};
constexpr Bytes kFileMax = mib(16);

LearnedTask learned_from(const TaskRow& row) {
  return {.memory = row.memory_peak,
          .gpu_memory = row.gpu_memory_peak,
          .load = row.times.load.value_or(Duration{0}),
          .train = row.times.train.value_or(Duration{0})};
}

}  // namespace

Result<void> keep_learned(const std::string& run_directory, const std::string& job_file) {
  Result<JournalReader> reader = JournalReader::open(journal_path(run_directory));
  if (!reader) return std::unexpected(std::move(reader.error()));
  const std::string path = learned_path(job_file);
  const std::string before =
      io::read_plain_file(path, kFileMax).value_or(std::nullopt).value_or("");
  Learned learned;
  if (!before.empty()) learned = Learned::parse(before).value_or(Learned{});
  // Tasks of long ago have taken all the room: it is learned anew.
  if (learned.full()) learned = {};
  bool worth_it = false;
  Result<void> read = reader->tasks({}, [&](const TaskRow& row) {
    if (row.standing.verdict != Verdict::Finished) return true;
    const LearnedTask task = learned_from(row);
    worth_it = worth_it || task.train >= kWorthIt;
    // One that was too quick to be seen says nothing.
    if (task.memory == Bytes{}) return true;
    learned.add(row.group_name, row.id, task);
    return true;
  });
  if (!read || !worth_it) return read;
  const std::string directory = std::filesystem::path(path).parent_path().string();
  if (Result<void> made = io::make_directories(directory); !made) return made;
  return io::replace_file(path, learned.to_json());
}

}  // namespace trainyard::cli
