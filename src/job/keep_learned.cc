#include "job/keep_learned.h"

#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "job/learned.h"
#include "journal/reader.h"
#include "model/status.h"
#include "run/run_directory.h"
#include "sys/files.h"

namespace trainyard::job {
namespace {

/// A task that trains for less says nothing of the next one.
constexpr Duration kWorthIt{1'000};
constexpr Bytes kFileMax = mib(16);

LearnedTask learned_from(const journal::TaskRow& row) {
  return {.memory = row.memory_peak,
          .gpu_memory = row.gpu_memory_peak,
          .load = row.times.load.value_or(Duration{0}),
          .train = row.times.train.value_or(Duration{0})};
}

}  // namespace

Result<Learned> load_learned(const std::string& path) {
  const Result<std::optional<std::string>> text = sys::read_plain_file(path, kFileMax);
  if (!text) return std::unexpected(text.error());
  if (!*text) return Learned{};
  Result<Learned> learned = Learned::parse(**text);
  if (!learned) return std::unexpected(std::move(learned.error()).in("'" + path + "' is not used"));
  return learned;
}

Result<void> keep_learned(const std::string& run_directory, std::uint32_t batch,
                          const std::string& path) {
  Result<journal::JournalReader> reader =
      journal::JournalReader::open(run::journal_path(run_directory));
  if (!reader) return std::unexpected(std::move(reader.error()));
  Learned learned = load_learned(path).value_or(Learned{});
  // Tasks of long ago have taken all the room: it is learned anew.
  if (learned.full()) learned = {};
  bool worth_it = false;
  Result<void> read = reader->tasks({}, [&](const journal::TaskRow& row) {
    if (row.batch != batch || row.standing.verdict != model::Verdict::Finished) return true;
    const LearnedTask task = learned_from(row);
    worth_it = worth_it || task.train >= kWorthIt;
    // One that was too quick to be seen says nothing.
    if (task.memory == Bytes{}) return true;
    learned.add(row.group_name, row.id, task);
    return true;
  });
  if (!read || !worth_it) return read;
  const std::string directory = std::filesystem::path(path).parent_path().string();
  if (Result<void> made = sys::make_directories(directory); !made) return made;
  return sys::replace_file(path, learned.to_json());
}

}  // namespace trainyard::job
