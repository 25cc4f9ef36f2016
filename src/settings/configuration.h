// The configuration of the whole program: fedflow's keys, the source of each value, and their
// meaning on a given machine.
//
// The layers, later ones over earlier ones: the defaults; the configuration file (--config, else
// ./trainyard.yaml); `config:` in the job file; --set. Immutable once loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/gpu_limits.h"
#include "model/plan.h"
#include "model/resources.h"
#include "settings/machine_entries.h"
#include "text/mistake.h"

namespace trainyard::settings {

/// Every key, in the order in which they are shown.
enum class Setting : std::uint8_t {
  Workdir,
  YardState,
  GpuPriorityStrategy,
  GpuPriorityReverse,
  OtherUsers,
  LimitsGpus,
  LimitsHours,
  LimitsLog,
  JournalRecord,
  Machines,
  AgentLease,
  AgentSsh,
  AgentProgram,
  AgentCopy,
  AgentLocal,
  SlurmOptions,
  SlurmAllocations,
  UtilizationLimitCpu,
  UtilizationLimitMemory,
  UtilizationLimitCudaMemory,
  UtilizationLimitGpu,
  RemainLimitMemory,
  RemainLimitCudaMemory,
  TaskDirectoryGrouping,
  TaskAllowDuplicateId,
  SchedulerDefaultMemory,
  SchedulerDefaultCudaMemory,
  SchedulerAutoAdjust,
  SchedulerMaxWaiting,
  SchedulerMaxProcess,
  SchedulerMaxPerGpu,
  SchedulerSettleTime,
  SchedulerInterval,
  SchedulerLoadRetries,
  SchedulerTrainRetries,
  SchedulerTryFirstTime,
  SchedulerMachinePatience,
  SmtpEnable,
  SmtpServerHost,
  SmtpServerPort,
  SmtpSecurity,
  SmtpCaFile,
  SmtpUser,
  SmtpPassword,
  SmtpReceiver,
  SmtpMinInterval,
  SmtpMaxNumbers,
};
constexpr std::size_t kSettingCount = 47;

/// The kind of a value.
enum class SettingKind : std::uint8_t {
  Path,          ///< Kept as an absolute one, or `auto`.
  Flag,          ///< true or false.
  OtherUsers,    ///< avoid or share.
  Strategy,      ///< PCI, TOTAL-MEM, REMAIN-MEM, PERFORMANCE, BEST-FIT or IDLE-FIRST.
  Share,         ///< Above 0 to 1, or above 0% to 100%.
  Size,          ///< An amount of memory.
  SizeOrAuto,    ///< The same, or `auto`.
  Count,         ///< A whole number from 0.
  CountOrAuto,   ///< The same, or `auto`.
  LogSize,       ///< An amount from a megabyte, or `none`.
  Record,        ///< usual or full.
  Machines,      ///< As settings/machine_entries.h says: names, or a list.
  Lease,         ///< A length of time from a second to a day.
  Command,       ///< A program and what it is always told, on one line.
  Hours,         ///< Times of the week with a whole number each, as model::hours_from() reads them.
  MaxPerGpu,     ///< A whole number from 0 to model::kMaxPerGpuMost.
  Tries,         ///< A whole number from 1.
  Allocations,   ///< A whole number from 1 to 64.
  Port,          ///< 1 to 65535.
  MailSecurity,  ///< auto, none, starttls or tls.
  Seconds,       ///< A number of seconds, or a length of time with a unit.
  Text,          ///< Anything on one line.
  Secret,        ///< The same, which is never shown.
};

struct SettingInfo {
  std::string_view key;  ///< "scheduler.max-process"
  SettingKind kind = SettingKind::Text;
  std::string_view fallback;     ///< The default.
  std::string_view description;  ///< For users, in one or more lines.
};

/// All keys by Setting.
std::span<const SettingInfo> settings();

class Configuration {
 public:
  /// The defaults.
  Configuration();

  /// The value as it was written. The others below read it as what the kind of the key says; it has
  /// been checked when it was set.
  [[nodiscard]] const std::string& text(Setting setting) const;
  [[nodiscard]] bool flag(Setting setting) const;
  [[nodiscard]] double share(Setting setting) const;
  [[nodiscard]] int count(Setting setting) const;
  [[nodiscard]] Duration duration(Setting setting) const;
  [[nodiscard]] std::optional<Bytes> size(Setting setting) const;  ///< Nothing for `auto`.

  /// Where the value came from: "default", "trainyard.yaml:3", "sweep.yaml:7", "--set".
  [[nodiscard]] const std::string& origin(Setting setting) const;

  /// A mistake in the value, told at the place where it was said.
  [[nodiscard]] text::Mistake mistake(Setting setting, std::string message) const;

  /// Where a value was said.
  struct Origin {
    std::string shown;      ///< As in origin().
    text::Mistake mistake;  ///< At that place, with no message yet.
  };

  /// Sets a value that has been checked.
  void set(Setting setting, std::string text, Origin origin);

  /// Sets a period: in tests alone, see settings/periods.h.
  void set_period(std::string key, Duration length);
  /// As it was set last, or `usual`.
  [[nodiscard]] Duration period(std::string_view key, Duration usual) const;

 private:
  struct Value {
    std::string text;
    Origin origin;
  };
  std::vector<Value> values_;
  std::map<std::string, Duration, std::less<>> periods_;
};

/// Read where none is said, if it is in the current directory.
inline constexpr const char* kConfigurationFile = "trainyard.yaml";

struct ConfigurationSources {
  std::string config_file;            ///< --config; empty: ./trainyard.yaml if there is one.
  std::vector<std::string> settings;  ///< --set key=value, in order.
  std::string current_directory;      ///< Absolute.
  /// Keys of tasks, which a file or --set may name by mistake instead of a setting.
  std::span<const std::string_view> task_keys = {};
};

/// The configuration without a job file's, for `trainyard config show`.
std::expected<Configuration, text::Mistakes> load_configuration(
    const ConfigurationSources& sources);

/// A configuration file with all keys, their defaults and what they mean: `trainyard config init`.
std::string commented_default();

/// Every key that is in force, as `key: value   # where it came from`, one a line. YAML that can be
/// read again (but for the password, which is not shown).
std::string show(const Configuration& configuration);

/// The same as a JSON object: {"scheduler.max-process": {"value": "0", "from": "default"}, ...}.
std::string show_json(const Configuration& configuration);

/// The policy that the keys set on a machine.
model::Policy policy(const Configuration& configuration, const model::Capacity& capacity);

/// The mistake that remain-limit.memory leaves tasks nothing of the memory of the machine `name`;
/// nothing if it leaves some, or if the memory is unknown (0).
std::optional<text::Mistake> no_memory_left(const Configuration& configuration, Bytes memory,
                                            std::string_view name);

/// limits: how many GPUs the runs of this user may have together, and when.
model::GpuLimits gpu_limits(const Configuration& configuration);

/// The memory for all tasks together: the machine's memory less what the limits keep free.
Bytes memory_to_give(const model::Policy& policy, const model::Capacity& capacity);

/// The memory reserved for a task without a `memory` key: scheduler.default-memory, and for `auto`
/// its CPUs' share of memory_to_give(), at most 2 GB for each CPU.
Bytes default_memory(const Configuration& configuration, const model::Capacity& capacity,
                     model::Cpus cpus);

/// How often the machine is looked at: each second, or more often when scheduler.interval says so.
Duration sample_interval(const Configuration& configuration);

/// How much of the disk a log may take; 0: any amount.
Bytes log_max(const Configuration& configuration);

/// Whether a run keeps all that its scheduler hears (journal.record).
bool records_all(const Configuration& configuration);

/// A command, or options of one: split at its spaces.
std::vector<std::string> words(const Configuration& configuration, Setting setting);

/// Where tasks run, in order: "local" is this machine.
std::vector<MachineEntry> machines(const Configuration& configuration);

/// The CPUs and the memory of a machine that tasks may use, as a line for users.
std::string machine_text(const model::Capacity& machine, const model::Policy& policy);

/// A line for each of its GPUs; empty where there are none.
std::string gpus_text(const model::Capacity& machine, const model::Policy& policy);

}  // namespace trainyard::settings
