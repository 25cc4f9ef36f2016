#include "job/task_keys.h"

#include <chrono>
#include <cmath>
#include <expected>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "job/term_text.h"
#include "model/priority.h"
#include "trainyard/bytes.h"

namespace trainyard::job {
namespace {

using model::Terms;

/// Reads a value with `Parse` into a member of Asked, or of what is in that: a path of members.
template <auto Parse, auto... Path>
Result<void> take(std::string_view value, Asked& into) {
  auto read = Parse(value);
  if (!read) return std::unexpected(std::move(read.error()));
  (into.*....*Path) = *std::move(read);
  return {};
}

Result<int> parse_thousandths(std::string_view text) {
  const Result<double> share = settings::parse_share(text);
  if (!share) return std::unexpected(share.error());
  return static_cast<int>(std::lround(1000 * *share));
}

/// The roles of the workers are read when the task starts.
Result<int> parse_worker_count(std::string_view text) {
  const Result<Workers> workers = parse_workers(text);
  if (!workers) return std::unexpected(workers.error());
  return workers->count;
}

// Values that are read where a command is, or its launch.
Result<void> check_shell(std::string_view text, Asked& /*into*/) {
  if (text == "bash" || text == "sh") return {};
  return std::unexpected(Error{fmt::format("must be bash or sh, not '{}'", text)});
}

Result<void> check_kill_mode(std::string_view text, Asked& /*into*/) {
  if (text == "mixed" || text == "control-group") return {};
  return std::unexpected(Error{fmt::format("must be mixed or control-group, not '{}'", text)});
}

// The value of an option of the C++ library as a job file has it, so that the same rules read it:
// bytes with their unit, but for a few, which are surely no memory; a number, a time, a word.
std::string word_for(Bytes value) {
  constexpr std::int64_t kSurelyMeant = 1'000;
  return fmt::format("{}{}", value.count, value.count >= kSurelyMeant ? "B" : "");
}
std::string word_for(double value) {
  // A third of a CPU is as many thousandths as there are.
  return std::isfinite(value) ? fmt::format("{:.3f}", value) : fmt::format("{}", value);
}
std::string word_for(int value) { return fmt::format("{}", value); }
std::string word_for(bool value) { return value ? "true" : "false"; }
std::string word_for(std::chrono::milliseconds value) {
  return value.count() == 0 ? "0" : fmt::format("{}ms", value.count());
}

template <auto Option>
std::optional<std::string> option_text(const TaskOptions& options) {
  const auto& value = options.*Option;
  if constexpr (std::is_same_v<decltype(value), const std::string&>) {
    return value.empty() ? std::nullopt : std::optional(value);
  } else {
    return value ? std::optional(word_for(*value)) : std::nullopt;
  }
}

template <auto Amount, auto Least>
std::optional<std::string> amount_text(const TaskOptions& options) {
  if (options.*Least) return "at least " + word_for(*(options.*Least));
  return option_text<Amount>(options);
}

std::optional<std::string> memory_limit_text(const TaskOptions& options) {
  if (!options.memory_hard) return std::nullopt;
  return *options.memory_hard ? "hard" : "none";
}

std::optional<std::string> retry_on_text(const TaskOptions& options) {
  if (!options.retry_on_time_limit) return std::nullopt;
  return *options.retry_on_time_limit ? "time-limit" : "";
}

constexpr std::array<TaskKeyInfo, kTaskKeys> kTable{{
    {.key = TaskKey::Memory,
     .name = "memory",
     .take = take<settings::parse_memory, &Asked::memory>,
     .option = amount_text<&TaskOptions::memory, &TaskOptions::memory_at_least>,
     .placeholders = true,
     .type = "[size](#sizes), `at least` a size",
     .fallback = "[`scheduler.default-memory`](configuration.md)",
     .schema = R"({"anyOf": [{"$ref": "#/definitions/size"}, {"$ref": "#/definitions/atLeast"}]})",
     .example = "at least 3GB",
     .flag = {.group = "Resources",
              .kind = "SIZE",
              .about = "Reserved memory: 3GB, 'at least 3GB' (default: see below)",
              .short_about = "Memory: 3GB (default: learned, or up to 2 GB a CPU)"}},
    {.key = TaskKey::MemoryLimit,
     .name = "memory-limit",
     .take = take<settings::parse_memory_limit, &Asked::terms, &Terms::memory_hard>,
     .option = memory_limit_text,
     .type = "`hard`, `none`",
     .fallback = "`none`",
     .schema = R"({"enum": ["hard", "none"]})",
     .example = "hard",
     .example_needs = "memory: 2GB",
     .flag = {.group = "Resources",
              .kind = "none|hard",
              .about = "Kill a task above its memory, no retry (default: none)",
              .is_ours = true}},
    {.key = TaskKey::Preemptible,
     .name = "preemptible",
     .take = take<settings::parse_flag, &Asked::terms, &Terms::preemptible>,
     .option = option_text<&TaskOptions::preemptible>,
     .type = "true, false",
     .fallback = "true",
     .schema = R"({"type": "boolean",
       "description": "Allow interrupting the task when memory is short."})",
     .example = "false",
     .flag = {.group = "Scheduling",
              .kind = "true|false",
              .about = "Interrupt and retry when memory is short (default: true)",
              .may_be_bare = true,
              .is_ours = true}},
    {.key = TaskKey::Priority,
     .name = "priority",
     .take = take<model::parse_priority, &Asked::terms, &Terms::priority>,
     .option = option_text<&TaskOptions::priority>,
     .placeholders = true,
     .type = "whole number",
     .fallback = "0",
     .schema = R"({"anyOf": [{"type": "integer", "minimum": -1000, "maximum": 1000},
                 {"type": "string"}],
       "description": "Waiting tasks with larger numbers start first."})",
     .example = "10",
     .flag = {.group = "Scheduling",
              .kind = "NUMBER",
              .about = "Priority, -1000 to 1000, larger starts first (default: 0)"}},
    {.key = TaskKey::Signal,
     .name = "signal",
     .take = take<parse_early_signal, &Asked::terms, &Terms::early_signal>,
     .option = option_text<&TaskOptions::signal>,
     .type = "`USR1@120`",
     .fallback = "none",
     .schema = R"({"$ref": "#/definitions/signal"})",
     .example = "USR1@120",
     .flag = {.group = "Scheduling",
              .kind = "SIGNAL",
              .about = "Send SIGUSR1 120 s before SIGTERM: USR1@120 (default: none)"}},
    {.key = TaskKey::Checkpoint,
     .name = "checkpoint",
     .take = take<settings::parse_flag, &Asked::terms, &Terms::checkpoints>,
     .type = "true, false",
     .fallback = "false",
     .schema = R"({"type": "boolean",
       "description": "The task saves checkpoints, and a retry continues from them."})",
     .example = "true",
     .flag = {.group = "Retries",
              .kind = "true|false",
              .about = "Retries continue from its checkpoints (default: false)",
              .may_be_bare = true}},
    {.key = TaskKey::Cpus,
     .name = "cpus",
     .take = take<settings::parse_cpus, &Asked::cpus>,
     .option = option_text<&TaskOptions::cpus>,
     .placeholders = true,
     .type = "number",
     .fallback = "1, or that of its ranks or workers",
     .schema = R"({"$ref": "#/definitions/number"})",
     .example = "0.5",
     .flag = {.group = "Resources",
              .kind = "NUMBER",
              .about = "CPUs: 2, 0.5 (default: 1; with GPUs, their share)",
              .short_about = "CPUs: 2, 0.5 (default: 1; with GPUs, their share)"}},
    {.key = TaskKey::Disk,
     .name = "disk",
     .take = take<parse_bytes, &Asked::terms, &Terms::request, &model::Request::disk>,
     .option = option_text<&TaskOptions::disk>,
     .placeholders = true,
     .type = "[size](#sizes)",
     .fallback = "0",
     .schema = R"({"$ref": "#/definitions/size",
       "description": "Disk space of the run that must be free, and is reserved."})",
     .example = "20GB",
     .flag = {.group = "Resources",
              .kind = "SIZE",
              .about = "Disk space to reserve: 20GB (default: 0)"}},
    {.key = TaskKey::Gpus,
     .name = "gpus",
     .take = take<settings::parse_gpus, &Asked::gpus>,
     .option = option_text<&TaskOptions::gpus>,
     .placeholders = true,
     .in_fingerprint = true,
     .type = "number",
     .fallback = "0",
     .schema = R"({"$ref": "#/definitions/gpuCount"})",
     .example = "2",
     .flag = {.group = "Resources",
              .kind = "NUMBER",
              .about = "Number of GPUs, whole or with --gpu-memory (default: 0)",
              .short_about = "Number of whole GPUs (default: 0)",
              .is_ours = true}},
    {.key = TaskKey::GpuMemory,
     .name = "gpu-memory",
     .take = take<settings::parse_gpu_memory, &Asked::gpu_memory>,
     .option = amount_text<&TaskOptions::gpu_memory, &TaskOptions::gpu_memory_at_least>,
     .placeholders = true,
     .type = "size, `at least` a size, `auto`",
     .schema = R"({"anyOf": [{"$ref": "#/definitions/size"}, {"$ref": "#/definitions/atLeast"},
       {"const": "auto"}]})",
     .example = "auto",
     .flag = {.group = "Resources",
              .kind = "SIZE",
              .about = "Reserved memory on each GPU, which is shared: 10GB, auto",
              .short_about = "Share a GPU and reserve this memory: 10GB, auto",
              .is_ours = true}},
    {.key = TaskKey::GpuMemoryLimit,
     .name = "gpu-memory-limit",
     .take = take<settings::parse_gpu_memory_limit, &Asked::terms, &Terms::gpu_memory_limit>,
     .option = option_text<&TaskOptions::gpu_memory_limit>,
     .type = "`none`, `soft`, `hard`",
     .fallback = "`soft`",
     .schema = R"({"enum": ["none", "soft", "hard"],
       "description": "Cap the task's memory on a shared GPU at what is not reserved for other tasks."})",
     .example = "hard",
     .example_needs = "gpu-memory: 2GB",
     .flag = {.group = "Resources",
              .kind = "none|soft|hard",
              .about = "Cap the task's memory on a shared GPU (default: soft)",
              .is_ours = true}},
    {.key = TaskKey::GpuUtilization,
     .name = "gpu-utilization",
     .take = take<parse_thousandths, &Asked::terms, &Terms::request, &model::Request::sharing,
                  &model::GpuSharing::utilization>,
     .option = option_text<&TaskOptions::gpu_utilization>,
     .placeholders = true,
     .type = "share",
     .schema = R"({"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                   {"type": "string"}],
       "description": "Share of a GPU's compute that the task uses when it runs there alone: 40% or 0.4."})",
     .example = "40%",
     .example_needs = "gpu-memory: 2GB",
     .flag = {.group = "Resources",
              .kind = "SHARE",
              .about = "Share of a GPU that the task uses when alone there: 40%",
              .is_ours = true}},
    {.key = TaskKey::MaxPerGpu,
     .name = "max-per-gpu",
     .take = take<settings::parse_max_per_gpu, &Asked::max_per_gpu>,
     .option = option_text<&TaskOptions::max_per_gpu>,
     .placeholders = true,
     .type = "number",
     .fallback = "[`scheduler.max-per-gpu`](configuration.md)",
     .schema = R"({"anyOf": [{"type": "integer", "minimum": 0, "maximum": 32}, {"type": "string"}],
       "description": "Maximum number of tasks on the task's GPU, itself included; 0: unlimited."})",
     .example = "2",
     .example_needs = "gpu-memory: 2GB",
     .flag = {.group = "Resources",
              .kind = "NUMBER",
              .about = "Maximum tasks on its GPU: 1 to 32 (default: no limit)",
              .is_ours = true}},
    {.key = TaskKey::Device,
     .name = "device",
     .take = take<settings::parse_device, &Asked::device>,
     .option = option_text<&TaskOptions::device>,
     .placeholders = true,
     .in_fingerprint = true,
     .type = "`cpu`, `cuda`, `cuda:<index>`",
     .schema = R"({"$ref": "#/definitions/device", "description": "cpu, cuda or cuda:<index>."})",
     .example = "cuda:1",
     .flag = {.group = "Resources",
              .kind = "DEVICE",
              .about = "Device: cpu, cuda, or cuda:1 (default: by --gpus)"}},
    {.key = TaskKey::Where,
     .name = "where",
     .take = take<model::parse_site_wish, &Asked::terms, &Terms::request, &model::Request::where>,
     .placeholders = true,
     .type = "`{machine: 'lab*', gpu: 'H100'}`",
     .fallback = "anywhere",
     .schema = R"({"$ref": "#/definitions/where",
       "description": "Allowed machines and GPUs, by name."})",
     .example = "{machine: 'lab*'}",
     .flag = {.group = "Resources",
              .kind = "machine=NAME,gpu=NAME",
              .about = "Machines and GPUs: machine=lab*, gpu=H100 (default: any)"}},
    {.key = TaskKey::Duration,
     .name = "duration",
     .take = take<parse_duration, &Asked::terms, &Terms::train_expected>,
     .option = option_text<&TaskOptions::duration>,
     .placeholders = true,
     .type = "[time](#times)",
     .fallback = "learned estimate",
     .schema = R"({"$ref": "#/definitions/duration"})",
     .example = "10m",
     .flag = {.group = "Scheduling",
              .kind = "TIME",
              .about = "Expected run time, to order tasks: 30m (default: learned)"}},
    {.key = TaskKey::TimeLimit,
     .name = "time-limit",
     .take = take<parse_duration, &Asked::terms, &Terms::time_limit>,
     .option = option_text<&TaskOptions::time_limit>,
     .placeholders = true,
     .type = "[time](#times)",
     .fallback = "0",
     .schema = R"({"$ref": "#/definitions/duration"})",
     .example = "1h",
     .flag = {.group = "Scheduling",
              .kind = "TIME",
              .about = "Time limit of an attempt: 8h (default: 0, no limit)",
              .short_about = "Time limit of an attempt: 8h (default: 0, no limit)",
              .is_ours = true}},
    {.key = TaskKey::Retries,
     .name = "retries",
     .take = take<parse_retries, &Asked::retries>,
     .option = option_text<&TaskOptions::retries>,
     .placeholders = true,
     .type = "number",
     .fallback = "0",
     .schema = R"({"$ref": "#/definitions/retries",
       "description": "Number of retries after a non-zero exit code, a signal, or a failed start."})",
     .example = "2",
     .flag = {.group = "Retries",
              .kind = "NUMBER",
              .about = "Retries after a failure, not a timeout (default: 0)",
              .short_about = "Retries after a failure, not a timeout (default: 0)",
              .is_ours = true}},
    {.key = TaskKey::OomRetries,
     .name = "oom-retries",
     .take = take<parse_retries, &Asked::terms, &Terms::retries, &model::Retries::out_of_memory>,
     .option = option_text<&TaskOptions::oom_retries>,
     .placeholders = true,
     .type = "number",
     .fallback = "2",
     .schema = R"({"$ref": "#/definitions/retries",
       "description": "Number of retries after running out of memory."})",
     .example = "5",
     .flag = {.group = "Retries",
              .kind = "NUMBER",
              .about = "Number of retries after running out of memory (default: 2)",
              .is_ours = true}},
    {.key = TaskKey::RetryOn,
     .name = "retry-on",
     .take =
         take<parse_retry_on, &Asked::terms, &Terms::retries, &model::Retries::after_time_limit>,
     .option = retry_on_text,
     .list = true,
     .type = "`[time-limit]`",
     .fallback = "`[]`",
     .schema = R"({"anyOf": [{"const": "time-limit"},
       {"type": "array", "items": {"enum": ["time-limit"]}}],
       "description": "Further outcomes that are retried like a failure."})",
     .example = "[time-limit]",
     .example_needs = "retries: 2",
     .flag = {.group = "Retries",
              .kind = "time-limit",
              .about = "Also use --retries when the time limit is exceeded"}},
    {.key = TaskKey::RetryDelay,
     .name = "retry-delay",
     .take = take<parse_duration, &Asked::terms, &Terms::retries, &model::Retries::delay>,
     .option = option_text<&TaskOptions::retry_delay>,
     .placeholders = true,
     .type = "[time](#times)",
     .fallback = "0",
     .schema = R"({"$ref": "#/definitions/duration",
       "description": "Delay before the first retry: 30s, 5m; doubled for each further one, up to 1h. Default: 0."})",
     .example = "30s",
     .flag = {.group = "Retries",
              .kind = "TIME",
              .about = "Delay before a retry, doubled each time: 30s (default: 0)"}},
    {.key = TaskKey::StartAfter,
     .name = "start-after",
     .take = take<parse_delay, &Asked::terms, &Terms::start_after>,
     .option = option_text<&TaskOptions::start_after>,
     .placeholders = true,
     .type = "[time](#times)",
     .fallback = "0",
     .schema = R"({"$ref": "#/definitions/delay",
       "description": "Earliest start, counted from the start of the run."})",
     .example = "10m",
     .flag = {.group = "Scheduling",
              .kind = "TIME",
              .about = "Wait this long after the start of the run: 1h (default: 0)",
              .is_ours = true}},
    {.key = TaskKey::If,
     .name = "if",
     .take = take<parse_run_if, &Asked::terms, &Terms::run_if>,
     .type = "`success()`, `failure()`, `always()`",
     .fallback = "`success()`",
     .schema =
         R"json({"enum": ["success()", "failure()", "always()", "success", "failure", "always"],
       "description": "Required outcome of all dependencies."})json",
     .example = "always()",
     .flag = {.group = "With submit --needs",
              .kind = "success|failure|always",
              .about = "Required outcome of the needed runs (default: success)"}},
    {.key = TaskKey::Ranks,
     .name = "ranks",
     .take = take<settings::parse_ranks, &Asked::terms, &Terms::ranks>,
     .option = option_text<&TaskOptions::ranks>,
     .placeholders = true,
     .in_fingerprint = true,
     .type = "number",
     .fallback = "one process",
     .schema = R"({"$ref": "#/definitions/ranks", "description": "Number of processes (ranks)."})",
     .example = "2",
     .flag = {.group = "Processes",
              .kind = "NUMBER",
              .about = "Number of ranks: processes of one data-parallel task"}},
    {.key = TaskKey::Launcher,
     .name = "launcher",
     .in_fingerprint = true,
     .type = "`built-in`, `mpirun`, `torchrun`, `srun`, a list",
     .fallback = "`built-in`",
     .schema = R"({"anyOf": [{"enum": ["built-in", "mpirun", "torchrun", "srun"]},
       {"type": "array", "minItems": 1, "items": {"type": "string"},
        "contains": {"const": "{command}"}}],
       "description": "Launcher of the ranks: a name, or a command line with {ranks}, {port} and {command}."})",
     .example = "mpirun",
     .example_needs = "ranks: 2",
     .flag = {.group = "Processes",
              .kind = "built-in|mpirun|torchrun|srun",
              .about = "Launcher of the ranks, with --ranks (default: built-in)"}},
    {.key = TaskKey::Workers,
     .name = "workers",
     .take = take<parse_worker_count, &Asked::terms, &Terms::workers>,
     .placeholders = true,
     .in_fingerprint = true,
     .type = "number, `{collector: 2, learner: 1}`",
     .fallback = "one process",
     .schema = R"({"$ref": "#/definitions/workers",
       "description": "Number of workers, or number of workers of each role."})",
     .example = "{collector: 2, learner: 1}",
     .flag = {.group = "Processes",
              .kind = "NUMBER|ROLE=NUMBER,...",
              .about = "Number of workers: 4, or learner=1,collector=2"}},
    {.key = TaskKey::TwoPhase,
     .name = "two-phase",
     .take = take<settings::parse_flag, &Asked::terms, &Terms::two_phase>,
     .type = "true, false",
     .fallback = "false",
     .schema = R"({"type": "boolean",
       "description": "Load data first, then wait for a device to train on."})",
     .example = "true",
     .flag = {.group = "Processes",
              .kind = "true|false",
              .about = "Load data, then wait for a device (default: false)",
              .may_be_bare = true}},
    {.key = TaskKey::Metrics,
     .name = "metrics",
     .shown_as_set = true,
     .type = "pattern",
     .schema = R"json({"type": "string",
       "description": "Find numbers in the output: loss=(?P<loss>[0-9.e+-]*[0-9])"})json",
     .example = "'loss=(?P<loss>[0-9.e+-]*[0-9])'",
     .flag = {.group = "Environment and output",
              .kind = "PATTERN",
              .about = "Find numbers in the output: 'loss=(?P<loss>[0-9.e+-]*[0-9])'"}},
    {.key = TaskKey::Environment,
     .name = "env",
     .placeholders = true,
     .in_fingerprint = true,
     .type = "names with values",
     .schema = R"({"$ref": "#/definitions/env"})",
     .example = "{A: 1}",
     .flag = {.group = "Environment and output",
              .kind = "NAME=VALUE",
              .about = "Environment variable; repeatable"}},
    {.key = TaskKey::WorkingDirectory,
     .name = "working-directory",
     .placeholders = true,
     .in_fingerprint = true,
     .type = "path",
     .fallback = "the job file's directory",
     .schema = R"({"$ref": "#/definitions/text"})",
     .example = "data",
     .flag = {.group = "Environment and output",
              .kind = "DIRECTORY",
              .about = "Working directory (default: this one)"}},
    {.key = TaskKey::Shell,
     .name = "shell",
     .take = check_shell,
     .in_fingerprint = true,
     .type = "`bash`, `sh`",
     .fallback = "`bash`",
     .schema = R"({"enum": ["bash", "sh"],
       "description": "Shell that runs a command that is one text."})",
     .example = "sh",
     .flag = {.group = "Environment and output",
              .kind = "bash|sh",
              .about = "Shell of a command that is one text (default: bash)"}},
    {.key = TaskKey::KillMode,
     .name = "kill-mode",
     .take = check_kill_mode,
     .shown_as_set = true,
     .type = "`mixed`, `control-group`",
     .fallback = "`mixed`",
     .schema = R"({"enum": ["mixed", "control-group"],
       "description": "Processes that get TERM at once: those that handle it, or all."})",
     .example = "control-group",
     .flag = {.group = "Processes",
              .kind = "mixed|control-group",
              .about = "Send TERM to the program first, or to all (default: mixed)"}},
}};

consteval bool in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (std::to_underlying(kTable.at(i).key) != i) return false;
  }
  return true;
}
static_assert(in_order(), "a row stands where its key is numbered");

constexpr std::array<std::string_view, 8> kJobKeys{"name",     "run-dir", "config",    "try-first",
                                                   "machines", "notify",  "on-finish", "groups"};
constexpr std::array<std::string_view, 9> kOwnGroupKeys{"name",         "needs",     "matrix",
                                                        "max-parallel", "fail-fast", "try-first",
                                                        "keep",         "preload",   "tasks"};
constexpr std::array<std::string_view, 2> kOwnTaskKeys{"id", "command"};

template <std::size_t N>
consteval auto with_task_keys(const std::array<std::string_view, N>& own) {
  std::array<std::string_view, N + kTaskKeys> all{};
  std::size_t next = 0;
  for (const std::string_view name : own) all.at(next++) = name;
  for (const TaskKeyInfo& info : kTable) all.at(next++) = info.name;
  return all;
}

constexpr auto kGroupKeys = with_task_keys(kOwnGroupKeys);
constexpr auto kTheTaskKeys = with_task_keys(kOwnTaskKeys);

}  // namespace

std::span<const TaskKeyInfo, kTaskKeys> task_keys() { return kTable; }

const TaskKeyInfo& info_of(TaskKey key) { return kTable.at(std::to_underlying(key)); }

std::span<const std::string_view> keys_of_job() { return kJobKeys; }
std::span<const std::string_view> keys_of_group() { return kGroupKeys; }
std::span<const std::string_view> keys_of_task() { return kTheTaskKeys; }
std::span<const std::string_view> keys_of_task_options() {
  return keys_of_task().subspan(kOwnTaskKeys.size());
}

}  // namespace trainyard::job
