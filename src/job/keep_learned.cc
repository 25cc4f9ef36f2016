#include "job/keep_learned.h"

#include <algorithm>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

/// What a peak says that was capped is what the cap was.
LearnedTask learned_from(const journal::TaskRow& row) {
  return {.memory = row.memory_peak,
          .memory_at_least = row.memory_at_least,
          .gpu_memory = row.gpu_capped ? Bytes{} : row.gpu_memory_peak,
          .load = row.times.load.value_or(Duration{0}),
          .train = row.times.train.value_or(Duration{0})};
}

/// Which execution a task ran in, and on which machine that was.
class Sources {
 public:
  static Result<Sources> read(journal::JournalReader& reader, std::string run) {
    Result<std::vector<journal::ExecutionRow>> executions = reader.executions();
    if (!executions) return std::unexpected(std::move(executions.error()));
    Result<std::vector<journal::GpuRow>> gpus = reader.gpus();
    if (!gpus) return std::unexpected(std::move(gpus.error()));
    return Sources(std::move(run), std::move(*executions), std::move(*gpus));
  }

  [[nodiscard]] LearnedFrom of(const journal::TaskRow& row) const {
    const journal::ExecutionRow* its = nullptr;
    for (const journal::ExecutionRow& execution : executions_) {
      if (its == nullptr || (row.ended && execution.started <= *row.ended)) its = &execution;
    }
    if (its == nullptr) return {};
    LearnedFrom from{
        .run = run_, .started_unix_ms = its->started_unix_ms, .host = its->host, .gpu = {}};
    const std::string label = row.gpus.substr(0, row.gpus.find(','));
    const auto gpu = std::ranges::find_if(gpus_, [&](const journal::GpuRow& it) {
      return it.execution == its->number && it.label == label;
    });
    if (label.empty() || gpu == gpus_.end()) return from;
    from.gpu = gpu->name;
    from.gpu_memory = gpu->memory;
    return from;
  }

 private:
  Sources(std::string run, std::vector<journal::ExecutionRow> executions,
          std::vector<journal::GpuRow> gpus)
      : run_(std::move(run)), executions_(std::move(executions)), gpus_(std::move(gpus)) {}

  std::string run_;
  std::vector<journal::ExecutionRow> executions_;
  std::vector<journal::GpuRow> gpus_;
};

/// The directory of the run as somebody sees it who stands where the job file lies.
std::string seen_from_job_file(const std::string& run_directory, const std::string& learned_path) {
  const std::filesystem::path run(run_directory);
  const std::filesystem::path job = std::filesystem::path(learned_path).parent_path().parent_path();
  const std::filesystem::path relative = run.lexically_relative(job);
  const bool below = !relative.empty() && *relative.begin() != "..";
  return below ? relative.string() : run_directory;
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

Result<void> save_learned(const Learned& learned, const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  if (Result<void> made = sys::make_directories(directory); !made) return made;
  return sys::replace_file(path, learned.to_json());
}

Result<void> keep_learned(const std::string& run_directory, std::uint32_t batch,
                          const std::string& path) {
  Result<journal::JournalReader> reader =
      journal::JournalReader::open(run::journal_path(run_directory));
  if (!reader) return std::unexpected(std::move(reader.error()));
  const Result<Sources> sources = Sources::read(*reader, seen_from_job_file(run_directory, path));
  if (!sources) return std::unexpected(sources.error());
  Learned learned = load_learned(path).value_or(Learned{});
  // Tasks of long ago have taken all the room: it is learned anew.
  if (learned.full()) learned = {};
  bool worth_it = false;
  Result<void> read = reader->tasks({}, [&](const journal::TaskRow& row) {
    if (row.batch != batch || row.standing.verdict != model::Verdict::Finished || row.edited) {
      return true;
    }
    const LearnedTask task = learned_from(row);
    worth_it = worth_it || task.train >= kWorthIt;
    // One that was too quick to be seen says nothing.
    if (task.memory == Bytes{}) return true;
    learned.add(row.group_in_file, row.id, task, sources->of(row));
    return true;
  });
  if (!read || !worth_it) return read;
  return save_learned(learned, path);
}

}  // namespace trainyard::job
