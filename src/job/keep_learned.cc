#include "job/keep_learned.h"

#include <algorithm>
#include <expected>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "journal/reader.h"
#include "model/plan.h"
#include "model/status.h"
#include "run/run_directory.h"
#include "sys/files.h"

namespace trainyard::job {
namespace {

constexpr Bytes kFileMax = mib(16);

/// A GPU peak under a cap is left out: it shows the cap, not the need.
LearnedTask learned_from(const journal::TaskRow& row) {
  return {.memory = row.memory_peak,
          .memory_at_least = row.memory_at_least,
          .gpu_memory = row.gpu_capped ? Bytes{} : row.gpu_memory_peak,
          .load = row.times.load.value_or(Duration{0}),
          .train = row.times.train.value_or(Duration{0})};
}

/// The training time of a task before its last attempt. Attempts count together if it resumes from
/// its checkpoint directory; else only the attempt that ran from the start counts. An attempt of
/// two phases loaded, too.
Duration trained_before(const journal::TaskRow& row, const std::string& run_directory) {
  if (row.earlier_attempts == Duration{0}) return Duration{0};
  std::error_code failed;
  const std::filesystem::directory_iterator checkpoints(
      std::filesystem::path(run_directory) / row.directory / run::kCheckpoints, failed);
  if (failed || checkpoints == std::filesystem::directory_iterator{}) return Duration{0};
  const Duration loaded = row.times.load.value_or(Duration{0}) *
                          std::max<std::int64_t>(std::int64_t{row.times.load_numbers} - 1, 0);
  return std::max(row.earlier_attempts - loaded, Duration{0});
}

/// When the last attempt of a task was on its GPUs: one of two phases has none while it loads.
std::optional<StayOnGpus> stay_of(const journal::TaskRow& row) {
  if (row.gpus.empty() || !row.started || !row.ended) return std::nullopt;
  const bool loads = row.times.load_numbers > 0;
  if (loads && !row.times.train) return std::nullopt;
  const Instant from = loads ? *row.ended + -*row.times.train : *row.started;
  return StayOnGpus{.gpus = row.gpus, .from = from, .until = *row.ended};
}

/// The tasks of a run that shared GPUs, and the measured cost of sharing.
class Sharing {
 public:
  static Result<Sharing> read(journal::JournalReader& reader) {
    Sharing sharing;
    std::vector<model::TaskIndex> tried_again;
    Result<void> done = reader.tasks({}, [&](const journal::TaskRow& row) {
      if (const auto stay = stay_of(row)) sharing.times_.add(*stay);
      if (row.attempt > 1 && row.times.load_numbers == 0) tried_again.push_back(row.index);
      return true;
    });
    if (!done) return std::unexpected(std::move(done.error()));
    for (const model::TaskIndex task : tried_again) {
      Result<std::vector<journal::AttemptRow>> attempts = reader.attempts(task);
      if (!attempts) return std::unexpected(std::move(attempts.error()));
      // The last one has been added with its task.
      attempts->pop_back();
      for (const journal::AttemptRow& it : *attempts) {
        if (!it.ended) continue;
        sharing.times_.add({.gpus = it.gpus, .from = it.started, .until = *it.ended});
      }
    }
    const Result<std::vector<journal::SharingRow>> rows = reader.sharing();
    if (!rows) return std::unexpected(rows.error());
    // With several kinds of tasks in a group, the kind counts of which most were measured.
    for (const journal::SharingRow& row : *rows) {
      model::SharingMeasured& most = sharing.measured_[row.group_name];
      if (most.to_a_gpu + most.to_a_gpu_max == 0 || row.measured.tasks > most.tasks) {
        most = row.measured;
      }
    }
    return sharing;
  }

  /// The cost of sharing of a group, by the name that users see; nothing where it was not measured.
  [[nodiscard]] std::optional<LearnedSharing> measured(const std::string& group,
                                                       const LearnedFrom& from) const {
    const auto found = measured_.find(group);
    if (found == measured_.end()) return std::nullopt;
    const model::SharingMeasured& it = found->second;
    return LearnedSharing{.to_a_gpu = it.to_a_gpu,
                          .factor = it.factor,
                          .tasks = it.tasks,
                          .to_a_gpu_max = it.to_a_gpu_max,
                          .from = from};
  }

  /// Corrects a task's training time as if it had been alone on its GPUs.
  void correct(LearnedTask& task, const journal::TaskRow& row, const WorkTogether& work) {
    const std::optional<StayOnGpus> stay = stay_of(row);
    if (!stay || task.train == Duration{0}) return;
    const TimeAlone::Bounds alone = times_.of(*stay, work);
    // A task that had others alongside it for a moment counts as alone.
    constexpr int kNearly = 95;
    if (alone.least * 100 >= task.train * kNearly) return;
    task.train = std::max(std::min(alone.most, task.train), Duration{1});
    const Duration least = std::max(alone.least, Duration{1});
    if (least < task.train) task.train_least = least;
  }

 private:
  TimeAlone times_;
  std::map<std::string, model::SharingMeasured> measured_;  ///< By group, as people see it.
};

/// The measurements of this run, and where it has none, those of an earlier one.
std::optional<LearnedSharing> together(const std::optional<LearnedSharing>& now,
                                       const std::optional<LearnedSharing>& before) {
  if (!now || !before) return now ? now : before;
  if (now->to_a_gpu > 0) return now;
  // It knows no more than where it stops to gain.
  if (now->to_a_gpu_max > 0 && now->to_a_gpu_max < before->to_a_gpu) return now;
  LearnedSharing both = *before;
  if (now->to_a_gpu_max > 0) both.to_a_gpu_max = now->to_a_gpu_max;
  return both;
}

/// The execution that a task ran in, and its machine.
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
    LearnedFrom from{.run = run_, .started_unix_ms = its->started_unix_ms, .host = its->host};
    if (!row.machine.empty()) from.host = row.machine;
    const std::string label = row.gpus.substr(0, row.gpus.find(','));
    const auto gpu = std::ranges::find_if(gpus_, [&](const journal::GpuRow& it) {
      return it.execution == its->number && it.machine == row.machine && it.label == label;
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

/// The run directory, relative to the job file's directory if it is below that, else absolute.
std::string seen_from_job_file(const std::string& run_directory, const std::string& learned_path) {
  const std::filesystem::path run(run_directory);
  const std::filesystem::path job = std::filesystem::path(learned_path).parent_path().parent_path();
  const std::filesystem::path relative = run.lexically_relative(job);
  // Estimates that are in the run directory itself have no name for it but ".".
  const bool below = !relative.empty() && relative != "." && *relative.begin() != "..";
  return below ? relative.string() : run_directory;
}

/// The file may be that of another version of trainyard, or of another user, and worth more to them.
Result<void> put_aside(const std::string& path) {
  std::error_code failed;
  std::filesystem::rename(path, path + ".unreadable", failed);
  if (!failed) return {};
  return std::unexpected(Error{failed.message()}.in(fmt::format("'{}' cannot be renamed", path)));
}

}  // namespace

Result<Learned> load_learned(const std::string& path) {
  const Result<std::optional<std::string>> text = sys::read_plain_file(path, kFileMax);
  if (!text) return std::unexpected(text.error());
  const std::optional<std::string>& there = *text;
  if (!there) return Learned{};
  Result<Learned> learned = Learned::parse(*there);
  if (!learned) return std::unexpected(std::move(learned.error()).in("'" + path + "' is not used"));
  return learned;
}

Result<void> save_learned(const Learned& learned, const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  if (Result<void> made = sys::make_directories(directory); !made) return made;
  return sys::replace_file(path, learned.to_json());
}

Result<void> keep_learned(const std::string& run_directory, const std::set<std::uint32_t>& batches,
                          const std::string& path, Duration trained_least,
                          const CommandOf& command_of) {
  Result<journal::JournalReader> reader =
      journal::JournalReader::open(run::journal_path(run_directory));
  if (!reader) return std::unexpected(std::move(reader.error()));
  const Result<Sources> sources = Sources::read(*reader, seen_from_job_file(run_directory, path));
  if (!sources) return std::unexpected(sources.error());
  Result<Learned> kept = load_learned(path);
  Learned learned = kept ? std::move(*kept) : Learned{};
  Result<Sharing> sharing = Sharing::read(*reader);
  if (!sharing) return std::unexpected(std::move(sharing.error()));
  // Old tasks have taken all the room, so the estimates start over.
  if (learned.full()) learned = {};
  bool worth_it = false;
  Result<void> read = reader->tasks({}, [&](const journal::TaskRow& row) {
    const bool counts = row.standing.verdict == model::Verdict::Finished && !row.edited;
    if (!counts || !batches.contains(row.batch)) return true;
    LearnedTask task = learned_from(row);
    const Duration before = trained_before(row, run_directory);
    worth_it = worth_it || task.train + before >= trained_least;
    // A task that was too quick to be sampled has no numbers.
    if (task.memory == Bytes{}) return true;
    const LearnedFrom from = sources->of(row);
    const std::optional<LearnedSharing> cost =
        together(sharing->measured(row.group_name, from),
                 learned.sharing(row.group_in_file, {.host = from.host, .gpus = {from.gpu}}));
    sharing->correct(task, row, cost ? cost->together() : WorkTogether{});
    task.train += before;
    if (task.train_least > Duration{0}) task.train_least += before;
    learned.add(row.group_in_file, row.id, task, from, command_of(row.batch, row.in_batch));
    if (cost && !row.gpus.empty()) learned.set_sharing(row.group_in_file, *cost);
    return true;
  });
  if (!read || !worth_it) return read;
  if (!kept) {
    if (Result<void> aside = put_aside(path); !aside) return aside;
  }
  return save_learned(learned, path);
}

}  // namespace trainyard::job
