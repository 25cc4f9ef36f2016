// The keys of a group and of a task: one table, for the reader, the options of `run` and `submit`,
// those of the C++ library and "did you mean", with which tests compare the schema, the
// documentation, the dry run and the fingerprint.
//
// A new key of a task is a row here, a member of model::Terms (or of the launch), a line of the dry
// run, a row of docs/job-file.md and an entry of the schema; job/task_keys_test.cc fails if one is
// missing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/resources.h"
#include "model/terms.h"
#include "settings/setting_value.h"
#include "trainyard/task_options.h"

namespace trainyard::job {

/// The keys that a group may have as well as a task; the task's value counts.
enum class TaskKey : std::uint8_t {
  Memory,
  MemoryLimit,
  Preemptible,
  Priority,
  Signal,
  Checkpoint,
  Cpus,
  Disk,
  Gpus,
  GpuMemory,
  GpuMemoryLimit,
  GpuUtilization,
  MaxPerGpu,
  Device,
  Where,
  Duration,
  TimeLimit,
  Retries,
  OomRetries,
  RetryOn,
  RetryDelay,
  StartAfter,
  If,
  Ranks,
  Launcher,
  Workers,
  TwoPhase,
  Metrics,
  Environment,
  WorkingDirectory,
  Shell,
  KillMode,
};
constexpr std::size_t kTaskKeys = 32;

/// The request of one combination of the matrix.
struct Asked {
  /// The keys that are terms as they are; those that are not set have the default of the terms.
  model::Terms terms;
  /// Keys whose value depends on others or on the configuration, or of which a rule must know
  /// whether they are set.
  std::optional<settings::MemoryWish> memory;
  std::optional<model::Cpus> cpus;
  std::optional<int> gpus;
  std::optional<settings::MemoryWish> gpu_memory;
  std::optional<int> max_per_gpu;
  std::optional<settings::DeviceWish> device;
  std::optional<int> retries;
};

/// The option of `run` and `submit` for a key.
struct TaskFlag {
  std::string_view group;  ///< The group in `trainyard help task-options`.
  std::string_view kind;   ///< The word that stands for the value: SIZE.
  std::string_view about;
  /// The text in the help of `run` and `submit`; empty: not listed there.
  std::string_view short_about;
  bool may_be_bare = false;  ///< Without a value it is `true`.
  /// Hardly another program has an option of this name: after `--` it is reported as misplaced.
  bool is_ours = false;
};

struct TaskKeyInfo {
  TaskKey key;
  std::string_view name;
  /// Reads a value; the error says what would be right. Nothing: a value is no single text
  /// (`launcher`, `env`), any text is right (`working-directory`), or it is read once (`metrics`).
  Result<void> (*take)(std::string_view value, Asked& into) = nullptr;
  /// The value in a program of the C++ library, as a job file would have it; nothing: it is not
  /// set. Null: the library has no such option.
  std::optional<std::string> (*option)(const TaskOptions& options) = nullptr;
  /// Whether the value may depend on the matrix.
  bool placeholders = false;
  /// Whether a list of words is allowed, too; it is read as one text, with commas.
  bool list = false;
  /// Whether a change of the key makes a finished task a different one.
  bool in_fingerprint = false;
  bool shown_as_set = false;       ///< The dry run shows the value as it is set.
  std::string_view type;           ///< As in docs/job-file.md.
  std::string_view fallback;       ///< As in docs/job-file.md.
  std::string_view schema;         ///< The property in docs/job-file.schema.json.
  std::string_view example;        ///< A value that means something else than saying nothing.
  std::string_view example_needs;  ///< Keys without which the example means nothing.
  TaskFlag flag;
};

/// In the order of TaskKey.
std::span<const TaskKeyInfo, kTaskKeys> task_keys();

const TaskKeyInfo& info_of(TaskKey key);

// The names of all keys: of a job file, of a group, of a task.
std::span<const std::string_view> keys_of_job();
std::span<const std::string_view> keys_of_group();
std::span<const std::string_view> keys_of_task();
/// The keys of TaskKey alone, which are also options of a command: --memory.
std::span<const std::string_view> keys_of_task_options();

}  // namespace trainyard::job
