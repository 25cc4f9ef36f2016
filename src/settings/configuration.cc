#include "settings/configuration.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/time.h"
#include "model/gpu_limits.h"
#include "model/plan.h"
#include "model/resources.h"
#include "schedule/ledger.h"
#include "settings/configuration_reader.h"
#include "settings/machine_entries.h"
#include "settings/periods.h"
#include "settings/setting_value.h"
#include "text/mistake.h"

namespace trainyard::settings {
namespace {

constexpr std::array<SettingInfo, kSettingCount> kSettings{{
    {.key = "workdir",
     .kind = SettingKind::Path,
     .fallback = "auto",
     .description = "Where runs go: run-dir is relative to it. A relative path starts at the file "
                    "that says it.\nauto: the directory of the job file."},
    {.key = "yard.state",
     .kind = SettingKind::Path,
     .fallback = "auto",
     .description =
         "Where your queue keeps what waits in it, on a disk of this machine; once set, it "
         "is kept.\nauto: $XDG_STATE_HOME/trainyard/<host>, which may be no disk that "
         "machines share."},
    {.key = "gpu-priority.strategy",
     .kind = SettingKind::Strategy,
     .fallback = "BEST-FIT",
     .description =
         "Which of the GPUs where a task fits it gets: the first on the bus (PCI), the "
         "largest\n(TOTAL-MEM), the emptiest (REMAIN-MEM), the fastest (PERFORMANCE), or "
         "the one with the\nleast left beside it (BEST-FIT). The spelling 'stratety' "
         "works, too."},
    {.key = "gpu-priority.reverse",
     .kind = SettingKind::Flag,
     .fallback = "false",
     .description = "The same order backwards."},
    {.key = "other-users",
     .kind = SettingKind::OtherUsers,
     .fallback = "avoid",
     .description = "A GPU on which a process of another user computes: 'avoid' does not use it, "
                    "'share' uses\nthe memory that is left. Your own other processes, those that "
                    "draw (display servers) and those\nwith less than 100 MB do not count."},
    {.key = "limits.gpus",
     .kind = SettingKind::CountOrAuto,
     .fallback = "auto",
     .description = "How many GPUs your runs on this machine may have together. auto: all."},
    {.key = "limits.hours",
     .kind = SettingKind::Hours,
     .fallback = "",
     .description =
         "The same at times of the week: 'Mon-Fri 08:00-19:00=2; Sat 10:00-12:00=1'. In a file "
         "also as\nlimits: {\"Mon-Fri 08:00-19:00\": {gpus: 2}}."},
    {.key = "limits.log",
     .kind = SettingKind::LogSize,
     .fallback = "10GB",
     .description =
         "How much of the disk one log of a task may take. Of a longer one the beginning "
         "(an eighth of it)\nand the end (a half) are kept. none: any amount."},
    {.key = "journal.record",
     .kind = SettingKind::Record,
     .fallback = "usual",
     .description = "full: the journal keeps all that the scheduler hears, too, so that 'trainyard "
                    "replay' can play the\nrun again, for a report of a bug. It grows with each "
                    "second."},
    {.key = "machines",
     .kind = SettingKind::Machines,
     .fallback = "local",
     .description =
         "Where tasks run: hosts that ssh knows, as in 'lab1, me@lab2', 'local' for this "
         "one, and 'slurm' for the\nnodes of the Slurm allocation; or a list, as in "
         "[local, {ssh: lab1, cpus: 8, memory: 32GB, gpus: 0,\nsetup: . venv/bin/activate}]. "
         "The first machine with room gets a task."},
    {.key = "agent.lease",
     .kind = SettingKind::Lease,
     .fallback = "60s",
     .description =
         "How long tasks on another machine keep running without a connection to the run. "
         "Then they are\nkilled there and retried elsewhere."},
    {.key = "agent.ssh",
     .kind = SettingKind::Command,
     .fallback = "ssh",
     .description = "The ssh that leads to other machines, with its options, as in 'ssh -F file'."},
    {.key = "agent.program",
     .kind = SettingKind::Command,
     .fallback = "trainyard",
     .description = "What starts trainyard there, as in '~/bin/trainyard'; the shell there reads "
                    "it."},
    {.key = "agent.copy",
     .kind = SettingKind::Flag,
     .fallback = "false",
     .description =
         "Whether this program is brought there, into the cache of its user, and started "
         "from there."},
    {.key = "agent.local",
     .kind = SettingKind::Flag,
     .fallback = "false",
     .description =
         "Whether an agent looks after this machine, too: its tasks run on when the yard is "
         "killed, and the run goes\non with them."},
    {.key = "slurm.options",
     .kind = SettingKind::Text,
     .fallback = "",
     .description =
         "What Slurm is asked for where 'machines' names slurm and the run is in no "
         "allocation: options of salloc,\nas in '--nodes=2 --time=8:00:00'. Empty: it is "
         "not asked."},
    {.key = "slurm.allocations",
     .kind = SettingKind::Allocations,
     .fallback = "1",
     .description = "How many allocations it is asked for at once."},
    {.key = "utilization-limit.cpu",
     .kind = SettingKind::Share,
     .fallback = "0.8",
     .description = "While programs other than this run use more than this share of the CPUs, "
                    "tasks without a GPU\nrun one at a time."},
    {.key = "utilization-limit.memory",
     .kind = SettingKind::Share,
     .fallback = "1.0",
     .description =
         "How much of the machine's memory may be in use, as a share. remain-limit.memory "
         "counts too:\nthe stricter of the two holds."},
    {.key = "utilization-limit.cuda-memory",
     .kind = SettingKind::Share,
     .fallback = "1.0",
     .description = "The same for the memory of each GPU."},
    {.key = "utilization-limit.gpu",
     .kind = SettingKind::Share,
     .fallback = "1.0",
     .description = "How much of a GPU the tasks that share it may use together, as far as their\n"
                    "gpu-utilization says it. One that is alone may use any part."},
    {.key = "remain-limit.memory",
     .kind = SettingKind::SizeOrAuto,
     .fallback = "auto",
     .description = "How much memory stays free. auto: 4 GB or 10 % of the machine, whichever is "
                    "less."},
    {.key = "remain-limit.cuda-memory",
     .kind = SettingKind::SizeOrAuto,
     .fallback = "auto",
     .description = "The same for each GPU. auto: 4 GB or 10 % of it, whichever is less."},
    {.key = "task.directory-grouping",
     .kind = SettingKind::Flag,
     .fallback = "true",
     .description = "A directory for each group, with the tasks' directories in it. false: all "
                    "tasks' directories\nstraight in the run directory; ids must then differ over "
                    "all groups."},
    {.key = "task.allow-duplicate-id",
     .kind = SettingKind::Flag,
     .fallback = "true",
     .description = "Whether tasks of different groups may have the same id. Within a group they "
                    "never may."},
    {.key = "scheduler.default-memory",
     .kind = SettingKind::SizeOrAuto,
     .fallback = "auto",
     .description =
         "The memory that is reserved for a task that says nothing about it. auto: for each of "
         "its\nCPUs the machine's memory (less what stays free) divided by its CPUs, at most "
         "2 GB."},
    {.key = "scheduler.default-cuda-memory",
     .kind = SettingKind::Size,
     .fallback = "2GB",
     .description =
         "What is reserved of its GPU for a task that names one (device: cuda:1) and says "
         "neither how\nmuch of its memory it needs nor that it wants all of it; and what must be "
         "free of a GPU that\nis given as a whole."},
    {.key = "scheduler.auto-adjust",
     .kind = SettingKind::Flag,
     .fallback = "true",
     .description =
         "Learn from what tasks take what the next ones of their kind need, in this run and "
         "from run to\nrun. A number in the job file is never made smaller by that."},
    {.key = "scheduler.max-waiting",
     .kind = SettingKind::Count,
     .fallback = "0",
     .description =
         "How many two-phase tasks may be started and not train yet. 0: as many as the CPUs "
         "could\ntrain at once, or 24 of those that want GPUs, which is the most in any case."},
    {.key = "scheduler.max-process",
     .kind = SettingKind::Count,
     .fallback = "0",
     .description = "How many tasks may run at once. 0: as many as their CPUs and memory allow."},
    {.key = "scheduler.max-per-gpu",
     .kind = SettingKind::MaxPerGpu,
     .fallback = "0",
     .description = "How many tasks may share a GPU. 0: as many as their memory allows. A task's "
                    "own max-per-gpu\noverrides it."},
    {.key = "scheduler.settle-time",
     .kind = SettingKind::Seconds,
     .fallback = "30",
     .description = "Of tasks that share a GPU with little room left not two begin at once: how "
                    "long the next one\nwaits at most for one that has begun to take its memory. "
                    "0: it does not wait."},
    {.key = "scheduler.interval",
     .kind = SettingKind::Seconds,
     .fallback = "60",
     .description = "Look at the machine at least this often, in seconds. It is looked at every "
                    "second\nanyway; less than 1 makes it more often. Decisions follow events at "
                    "once."},
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
     .fallback = "120",
     .description = "How long, in seconds, the task that runs first (try-first: 1) must run before "
                    "the others of its\ngroup start. They start earlier if it finishes or reports "
                    "its progress."},
    {.key = "smtp.enable",
     .kind = SettingKind::Flag,
     .fallback = "false",
     .description = "Mail the report of each group when it has ended. It needs the server, the "
                    "user and the receiver."},
    {.key = "smtp.server-host",
     .kind = SettingKind::Text,
     .fallback = "",
     .description = "The mail server."},
    {.key = "smtp.server-port",
     .kind = SettingKind::Port,
     .fallback = "25",
     .description = "Its port: 587 is usual for users with a password, 465 for TLS."},
    {.key = "smtp.security",
     .kind = SettingKind::MailSecurity,
     .fallback = "auto",
     .description =
         "tls: encrypted from the start. starttls: encrypted before anything is said. none: in\n"
         "clear, the password too. auto: tls on port 465; else starttls where there is a "
         "password,\n"
         "and without one as the server offers it, with any certificate."},
    {.key = "smtp.ca-file",
     .kind = SettingKind::Path,
     .fallback = "auto",
     .description =
         "A file of certificates that vouch for the server. auto: those of the machine."},
    {.key = "smtp.user",
     .kind = SettingKind::Text,
     .fallback = "",
     .description = "Who the mail is from, and who logs in where there is a password."},
    {.key = "smtp.password",
     .kind = SettingKind::Secret,
     .fallback = "",
     .description = "The user's password. Empty: nobody logs in."},
    {.key = "smtp.receiver",
     .kind = SettingKind::Text,
     .fallback = "",
     .description = "Who gets the mail; several with commas between them."},
    {.key = "smtp.min-interval",
     .kind = SettingKind::Seconds,
     .fallback = "3600",
     .description = "At least this many seconds between two mails: reports that come sooner go "
                    "into the next\none, and what is left when the run ends is sent then."},
    {.key = "smtp.max-numbers",
     .kind = SettingKind::Count,
     .fallback = "10",
     .description = "At most this many mails a run, of which the last one is kept for its end; 0: "
                    "any number."},
}};

constexpr std::string_view kAuto = "auto";
constexpr std::string_view kNone = "none";

model::GpuStrategy strategy_of(std::string_view text) {
  if (text == "PCI") return model::GpuStrategy::Pci;
  if (text == "TOTAL-MEM") return model::GpuStrategy::TotalMemory;
  if (text == "REMAIN-MEM") return model::GpuStrategy::RemainingMemory;
  return text == "PERFORMANCE" ? model::GpuStrategy::Performance : model::GpuStrategy::BestFit;
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
