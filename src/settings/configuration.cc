#include "settings/configuration.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "schedule/ledger.h"
#include "settings/configuration_reader.h"
#include "settings/periods.h"
#include "settings/setting_value.h"

namespace trainyard::settings {
namespace {

constexpr std::array<SettingInfo, kSettingCount> kSettings{{
    {.key = "workdir",
     .kind = SettingKind::Path,
     .fallback = "auto",
     .description = "Directory for runs; run-dir is relative to it. A relative path starts at the "
                    "file that sets it.\nauto: the directory of the job file."},
    {.key = "yard.state",
     .kind = SettingKind::Path,
     .fallback = "auto",
     .description =
         "Directory of your queue, on a disk of this machine; permanent once it is set.\nauto: "
         "$XDG_STATE_HOME/trainyard/<host>, which must not be on a disk that machines share."},
    {.key = "gpu-priority.strategy",
     .kind = SettingKind::Strategy,
     .fallback = "IDLE-FIRST",
     .description =
         "GPU for a task, of those on which it fits. IDLE-FIRST: a GPU without tasks, up to your "
         "share of\nthe GPUs, then as BEST-FIT. PCI: the first on the bus. TOTAL-MEM: the largest. "
         "REMAIN-MEM: the\none with the most free memory. PERFORMANCE: the fastest. BEST-FIT: the "
         "one on which the least\nmemory remains. The spelling 'stratety' works, too."},
    {.key = "gpu-priority.reverse",
     .kind = SettingKind::Flag,
     .fallback = "false",
     .description = "Reverse the order of gpu-priority.strategy."},
    {.key = "other-users",
     .kind = SettingKind::OtherUsers,
     .fallback = "avoid",
     .description =
         "GPUs that another user's process is using. avoid: they are not used. share: tasks use "
         "the free\nmemory. These do not count: your own other processes, display servers, "
         "processes with less than\n100 MB, and reservations of another user's trainyard runs."},
    {.key = "limits.gpus",
     .kind = SettingKind::CountOrAuto,
     .fallback = "auto",
     .description =
         "Maximum number of GPUs for all your runs on this machine together. auto: all."},
    {.key = "limits.hours",
     .kind = SettingKind::Hours,
     .description = "limits.gpus at times of the week: 'Mon-Fri 08:00-19:00=2; Sat 10:00-12:00=1'. "
                    "In a file also\nlimits: {\"Mon-Fri 08:00-19:00\": {gpus: 2}}."},
    {.key = "limits.log",
     .kind = SettingKind::LogSize,
     .fallback = "10GB",
     .description = "Maximum size of one log of a task. A larger log keeps its beginning (an "
                    "eighth of this size) and\nits end (a half). none: no limit."},
    {.key = "journal.record",
     .kind = SettingKind::Record,
     .fallback = "usual",
     .description =
         "full: the journal also records every event of the scheduler. 'trainyard replay' replays "
         "such a\nrun, for a bug report. The journal grows each second."},
    {.key = "machines",
     .kind = SettingKind::Machines,
     .fallback = "local",
     .description = "Where tasks run: hosts that ssh knows ('lab1, me@lab2'), 'local' for this "
                    "one, and 'slurm' for the\nnodes of the Slurm allocation; or a list, as in "
                    "[local, {ssh: lab1, cpus: 8, memory: 32GB, gpus: 0,\nsetup: . "
                    "venv/bin/activate}]. The first machine with room is assigned the task."},
    {.key = "agent.lease",
     .kind = SettingKind::Lease,
     .fallback = "1m",
     .description = "Time for which tasks on another machine keep running without a connection to "
                    "the run. Then they\nare killed there and retried elsewhere."},
    {.key = "agent.ssh",
     .kind = SettingKind::Command,
     .fallback = "ssh",
     .description = "ssh command for other machines, with its options: 'ssh -F file'."},
    {.key = "agent.program",
     .kind = SettingKind::Command,
     .fallback = "trainyard",
     .description = "Command that starts trainyard on another machine, such as '~/bin/trainyard'. "
                    "It runs in a shell\nthere."},
    {.key = "agent.copy",
     .kind = SettingKind::Flag,
     .fallback = "false",
     .description =
         "Copy this program to the other machine, into the user's cache, and start the copy."},
    {.key = "agent.local",
     .kind = SettingKind::Flag,
     .fallback = "false",
     .description = "Use an agent on this machine, too: its tasks keep running if trainyard is "
                    "killed, and a resumed run\ncontinues with them."},
    {.key = "slurm.options",
     .kind = SettingKind::Text,
     .description = "Options of salloc for a run outside an allocation, if 'machines' names "
                    "slurm:\n'--nodes=2 --time=8:00:00'. Empty: the run requests no nodes."},
    {.key = "slurm.allocations",
     .kind = SettingKind::Allocations,
     .fallback = "1",
     .description = "Number of concurrent Slurm allocations."},
    {.key = "utilization-limit.cpu",
     .kind = SettingKind::Share,
     .fallback = "0.8",
     .description = "While programs other than this run use this share of the CPUs or more, "
                    "tasks without a GPU\nrun one at a time. 100%: no limit."},
    {.key = "utilization-limit.memory",
     .kind = SettingKind::Share,
     .fallback = "1.0",
     .description = "Share of the machine's memory that may be in use. remain-limit.memory "
                    "applies, too: the stricter\nlimit counts."},
    {.key = "utilization-limit.cuda-memory",
     .kind = SettingKind::Share,
     .fallback = "1.0",
     .description = "Share of the memory of each GPU that may be in use. remain-limit.cuda-memory "
                    "applies, too: the\nstricter limit counts."},
    {.key = "utilization-limit.gpu",
     .kind = SettingKind::Share,
     .fallback = "1.0",
     .description = "Share of a GPU that its tasks may use together, as the sum of their "
                    "gpu-utilization. A task that is\nalone on a GPU may use any share."},
    {.key = "remain-limit.memory",
     .kind = SettingKind::SizeOrAuto,
     .fallback = "auto",
     .description =
         "Memory that stays free. auto: 4 GB or 10 % of the machine, whichever is less."},
    {.key = "remain-limit.cuda-memory",
     .kind = SettingKind::SizeOrAuto,
     .fallback = "auto",
     .description =
         "Memory of each GPU that stays free. auto: 4 GB or 10 % of it, whichever is less."},
    {.key = "task.directory-grouping",
     .kind = SettingKind::Flag,
     .fallback = "true",
     .description = "true: each group has a directory, with the directories of its tasks. false: "
                    "all directories of tasks\nare in the run directory, and ids must be unique in "
                    "the whole job."},
    {.key = "task.allow-duplicate-id",
     .kind = SettingKind::Flag,
     .fallback = "true",
     .description = "Allow the same id in several groups. Within a group, ids are always unique."},
    {.key = "scheduler.default-memory",
     .kind = SettingKind::SizeOrAuto,
     .fallback = "auto",
     .description =
         "Memory that is reserved for a task without 'memory'. auto: for each CPU of the task an "
         "equal part of\nthe machine's memory (without what stays free), at most 2 GB."},
    {.key = "scheduler.default-cuda-memory",
     .kind = SettingKind::Size,
     .fallback = "2GB",
     .description = "GPU memory that is reserved for a task that names a GPU (device: cuda:1) "
                    "without gpu-memory or\n'gpus'. Also the memory that must be free on a GPU "
                    "that is assigned whole."},
    {.key = "scheduler.auto-adjust",
     .kind = SettingKind::Flag,
     .fallback = "true",
     .description =
         "Learn from the memory and the time of tasks what the next tasks of their kind need, in "
         "this run\nand in later runs. Numbers in the job file are only raised."},
    {.key = "scheduler.max-waiting",
     .kind = SettingKind::Count,
     .fallback = "0",
     .description = "Maximum number of two-phase tasks that have started and do not train yet. 0: "
                    "only these limits, which\nalways apply: as many as the CPUs could train at "
                    "once, and 24 tasks that need GPUs."},
    {.key = "scheduler.max-process",
     .kind = SettingKind::Count,
     .fallback = "0",
     .description =
         "Maximum number of tasks that run at once. 0: as many as their CPUs and memory allow."},
    {.key = "scheduler.max-per-gpu",
     .kind = SettingKind::MaxPerGpu,
     .fallback = "0",
     .description = "Maximum number of tasks that share a GPU. 0: as many as their memory allows. "
                    "A task's own\nmax-per-gpu overrides it."},
    {.key = "scheduler.settle-time",
     .kind = SettingKind::Seconds,
     .fallback = "30s",
     .description =
         "Maximum delay between two tasks that start on a GPU with little free memory: the second\n"
         "one waits until the first has allocated its memory. 0s: no delay."},
    {.key = "scheduler.interval",
     .kind = SettingKind::Seconds,
     .fallback = "1m",
     .description =
         "Sample the machine at least this often. trainyard samples it every second anyway; use a\n"
         "value below 1s for more. Decisions follow events at once."},
    {.key = "scheduler.load-nretry",
     .kind = SettingKind::Tries,
     .fallback = "3",
     .description = "Number of times that a task may run out of memory while loading, before it "
                    "fails.\n3: two retries; 1: no retry."},
    {.key = "scheduler.train-nretry",
     .kind = SettingKind::Tries,
     .fallback = "3",
     .description = "Number of times that a task may run out of memory, before it fails.\n3: two "
                    "retries; 1: no retry."},
    {.key = "scheduler.try-first-time",
     .kind = SettingKind::Seconds,
     .fallback = "2m",
     .description =
         "Time for which the task that runs first (try-first: 1) must run before the other tasks "
         "of its\ngroup start. They start earlier if it finishes or reports its progress."},
    {.key = "scheduler.machine-patience",
     .kind = SettingKind::Seconds,
     .fallback = "10m",
     .description =
         "Time for which the machine may be too short of disk space, inodes, processes or open "
         "files to start\nany task. Then the run ends with exit code 75 and can be resumed."},
    {.key = "smtp.enable",
     .kind = SettingKind::Flag,
     .fallback = "false",
     .description = "Mail the report of each group when it has ended. Requires a server, a user "
                    "and a receiver."},
    {.key = "smtp.server-host", .kind = SettingKind::Text, .description = "Mail server."},
    {.key = "smtp.server-port",
     .kind = SettingKind::Port,
     .fallback = "25",
     .description = "Port of the server: usually 587 for users with a password, 465 for TLS."},
    {.key = "smtp.security",
     .kind = SettingKind::MailSecurity,
     .fallback = "auto",
     .description =
         "tls: encrypted from the start. starttls: encrypted before any data is sent. none: "
         "unencrypted, the\npassword too. auto: tls on port 465; otherwise starttls with a "
         "password, and without a password what\nthe server offers, with any certificate."},
    {.key = "smtp.ca-file",
     .kind = SettingKind::Path,
     .fallback = "auto",
     .description =
         "File with the certificates of the server's authority. auto: those of the machine."},
    {.key = "smtp.user",
     .kind = SettingKind::Text,
     .description = "Sender of the mail, and the user for the login if there is a password."},
    {.key = "smtp.password",
     .kind = SettingKind::Secret,
     .description = "Password of the user. Empty: no login."},
    {.key = "smtp.receiver",
     .kind = SettingKind::Text,
     .description = "Receivers of the mail, separated by commas."},
    {.key = "smtp.min-interval",
     .kind = SettingKind::Seconds,
     .fallback = "1h",
     .description = "Minimum time between two mails. Earlier reports are added to the "
                    "next mail; the rest is\nsent when the run ends."},
    {.key = "smtp.max-numbers",
     .kind = SettingKind::Count,
     .fallback = "10",
     .description =
         "Maximum number of mails of a run; the last one is kept for its end. 0: no limit."},
}};

constexpr std::string_view kAuto = "auto";
constexpr std::string_view kNone = "none";

model::GpuStrategy strategy_of(std::string_view text) {
  if (text == "PCI") return model::GpuStrategy::Pci;
  if (text == "TOTAL-MEM") return model::GpuStrategy::TotalMemory;
  if (text == "REMAIN-MEM") return model::GpuStrategy::RemainingMemory;
  if (text == "PERFORMANCE") return model::GpuStrategy::Performance;
  return text == "BEST-FIT" ? model::GpuStrategy::BestFit : model::GpuStrategy::IdleFirst;
}

/// The smaller of `most` and a tenth.
Bytes tenth(Bytes whole, Bytes most) { return {std::min(whole.count / 10, most.count)}; }

}  // namespace

model::GpuLimits gpu_limits(const Configuration& configuration) {
  model::GpuLimits limits;
  const std::string& usual = configuration.text(Setting::LimitsGpus);
  if (usual != kAuto) limits.usual = configuration.count(Setting::LimitsGpus);
  auto hours = model::hours_from(configuration.text(Setting::LimitsHours));
  check(hours.has_value(), "checked hours");
  limits.hours = *std::move(hours);
  return limits;
}

std::span<const SettingInfo> settings() { return kSettings; }

Configuration::Configuration() {
  values_.reserve(kSettingCount);
  for (const SettingInfo& info : kSettings) {
    values_.push_back({.text = std::string(info.fallback),
                       .origin = {.shown = "default", .mistake = {.file = "default"}}});
  }
}

void Configuration::set_period(std::string key, Duration length) {
  periods_.insert_or_assign(std::move(key), length);
}

Duration Configuration::period(std::string_view key, Duration usual) const {
  const auto found = periods_.find(key);
  return found == periods_.end() ? usual : found->second;
}

const std::string& Configuration::text(Setting setting) const {
  return values_[static_cast<std::size_t>(setting)].text;
}

const std::string& Configuration::origin(Setting setting) const {
  return values_[static_cast<std::size_t>(setting)].origin.shown;
}

text::Mistake Configuration::mistake(Setting setting, std::string message) const {
  text::Mistake mistake = values_[static_cast<std::size_t>(setting)].origin.mistake;
  mistake.message = std::move(message);
  return mistake;
}

void Configuration::set(Setting setting, std::string text, Origin origin) {
  values_[static_cast<std::size_t>(setting)] = {.text = std::move(text),
                                                .origin = std::move(origin)};
}

bool Configuration::flag(Setting setting) const {
  const auto value = parse_flag(text(setting));
  check(value.has_value(), "a checked flag");
  return *value;
}

double Configuration::share(Setting setting) const {
  const auto value = parse_share(text(setting));
  check(value.has_value(), "a checked share");
  return *value;
}

int Configuration::count(Setting setting) const {
  const auto value = parse_count(text(setting));
  check(value.has_value(), "a checked number");
  return *value;
}

Duration Configuration::duration(Setting setting) const {
  const auto value = parse_seconds(text(setting));
  check(value.has_value(), "a checked length of time");
  return *value;
}

std::optional<Bytes> Configuration::size(Setting setting) const {
  if (text(setting) == kAuto) return std::nullopt;
  const auto value = parse_bytes(text(setting));
  check(value.has_value(), "a checked amount of memory");
  return *value;
}

std::expected<Configuration, text::Mistakes> load_configuration(
    const ConfigurationSources& sources) {
  text::MistakeList mistakes;
  Configuration configuration;
  apply_config_file(configuration, sources, mistakes);
  apply_settings(configuration, sources, mistakes);
  if (!mistakes.empty()) return std::unexpected(std::move(mistakes).take());
  return configuration;
}

std::optional<text::Mistake> no_memory_left(const Configuration& configuration, Bytes memory,
                                            std::string_view name) {
  constexpr Setting kKept = Setting::RemainLimitMemory;
  const auto remain = configuration.size(kKept);
  if (!remain || *remain < memory || memory.count == 0) return std::nullopt;
  return configuration.mistake(
      kKept, fmt::format("remain-limit.memory: '{}' leaves no memory for tasks; {} has {}",
                         configuration.text(kKept), name, to_text(memory)));
}

model::Policy policy(const Configuration& configuration, const model::Capacity& capacity) {
  model::Policy policy;
  policy.cpu_utilization_max = configuration.share(Setting::UtilizationLimitCpu);
  policy.memory_utilization_max = configuration.share(Setting::UtilizationLimitMemory);
  policy.memory_remain =
      configuration.size(Setting::RemainLimitMemory).value_or(tenth(capacity.memory, gb(4)));
  policy.gpu_strategy = strategy_of(configuration.text(Setting::GpuPriorityStrategy));
  policy.gpu_reverse = configuration.flag(Setting::GpuPriorityReverse);
  policy.gpu_avoids_others = configuration.text(Setting::OtherUsers) == "avoid";
  policy.gpu_memory_utilization_max = configuration.share(Setting::UtilizationLimitCudaMemory);
  policy.gpu_utilization_max = configuration.share(Setting::UtilizationLimitGpu);
  policy.gpu_settle_max = configuration.duration(Setting::SchedulerSettleTime);
  policy.gpu_memory_remain = configuration.size(Setting::RemainLimitCudaMemory);
  policy.gpu_memory_least =
      configuration.size(Setting::SchedulerDefaultCudaMemory).value_or(Bytes{});
  policy.watches_memory = true;
  policy.auto_adjust = configuration.flag(Setting::SchedulerAutoAdjust);
  policy.processes_max = configuration.count(Setting::SchedulerMaxProcess);
  policy.waiting_max = configuration.count(Setting::SchedulerMaxWaiting);
  policy.load_retries = configuration.count(Setting::SchedulerLoadRetries);
  policy.try_first_time = configuration.duration(Setting::SchedulerTryFirstTime);
  policy.machine_patience = configuration.duration(Setting::SchedulerMachinePatience);
  policy.train_retries = configuration.count(Setting::SchedulerTrainRetries);
  for (const auto& [key, member] : kPolicyPeriods) {
    policy.*member = configuration.period(key, policy.*member);
  }
  return policy;
}

Bytes memory_to_give(const model::Policy& policy, const model::Capacity& capacity) {
  const Bytes given = capacity.memory - schedule::memory_kept_free(policy, capacity);
  return std::max(given, Bytes{0});
}

Bytes default_memory(const Configuration& configuration, const model::Capacity& capacity,
                     model::Cpus cpus) {
  if (const auto fixed = configuration.size(Setting::SchedulerDefaultMemory)) return *fixed;
  const Bytes given = memory_to_give(policy(configuration, capacity), capacity);
  const std::int64_t machine_milli = std::max<std::int64_t>(capacity.cpus.milli, 1);
  // In doubles: bytes times thousandths of CPUs may be more than 64 bits hold.
  const double each =
      std::min(static_cast<double>(gb(2).count),
               static_cast<double>(given.count) * 1000.0 / static_cast<double>(machine_milli));
  // A task that asks for more CPUs than there are is to hear of that, and not of memory.
  const std::int64_t milli = std::min(cpus.milli, machine_milli);
  const double share = each * static_cast<double>(milli) / 1000.0;
  // Whole megabytes read better, and the shares of all CPUs together still fit.
  const auto megabytes = static_cast<std::int64_t>(share / static_cast<double>(mb(1).count));
  return mb(megabytes);
}

Bytes log_max(const Configuration& configuration) {
  const std::string& text = configuration.text(Setting::LimitsLog);
  return text == kNone ? Bytes{} : parse_bytes(text).value_or(Bytes{});
}

std::vector<std::string> words(const Configuration& configuration, Setting setting) {
  std::vector<std::string> found;
  for (const auto word : std::views::split(configuration.text(setting), ' ')) {
    if (!word.empty()) found.emplace_back(word.begin(), word.end());
  }
  return found;
}

std::vector<MachineEntry> machines(const Configuration& configuration) {
  // It was read when it was set.
  return parse_machines(configuration.text(Setting::Machines))
      .value_or(std::vector<MachineEntry>());
}

bool records_all(const Configuration& configuration) {
  return configuration.text(Setting::JournalRecord) == "full";
}

Duration sample_interval(const Configuration& configuration) {
  constexpr Duration kShortest{100};
  constexpr Duration kUsual{1000};
  return std::clamp(configuration.duration(Setting::SchedulerInterval), kShortest, kUsual);
}

}  // namespace trainyard::settings
