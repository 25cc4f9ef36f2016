#include "job/task_keys.h"

#include <array>
#include <cstddef>
#include <expected>
#include <span>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/result.h"
#include "job/early_signal.h"
#include "job/retry_text.h"
#include "job/run_if.h"
#include "job/workers_text.h"
#include "model/priority.h"
#include "model/site_wish.h"
#include "settings/setting_value.h"

namespace trainyard::job {
namespace {

/// Reads a value with `Parse` into a member of Asked.
template <auto Member, auto Parse>
Result<void> take(std::string_view value, Asked& into) {
  auto read = Parse(value);
  if (!read) return std::unexpected(std::move(read.error()));
  into.*Member = *read;
  return {};
}

constexpr std::array<TaskKeyInfo, kTaskKeys> kTable{{
    {.key = TaskKey::Memory,
     .name = "memory",
     .take = take<&Asked::memory, settings::parse_memory>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "[size](#sizes), `at least` a size",
     .fallback = "[`scheduler.default-memory`](configuration.md)",
     .schema = R"({"anyOf": [{"$ref": "#/definitions/size"}, {"$ref": "#/definitions/atLeast"}]})",
     .example = "at least 3GB"},
    {.key = TaskKey::MemoryLimit,
     .name = "memory-limit",
     .take = take<&Asked::memory_hard, settings::parse_memory_limit>,
     .placeholders = false,
     .in_fingerprint = false,
     .type = "`hard`, `none`",
     .fallback = "`none`",
     .schema = R"({"enum": ["hard", "none"]})",
     .example = "hard"},
    {.key = TaskKey::Preemptible,
     .name = "preemptible",
     .take = take<&Asked::preemptible, settings::parse_flag>,
     .placeholders = false,
     .in_fingerprint = false,
     .type = "true, false",
     .fallback = "true",
     .schema = R"({"type": "boolean",
       "description": "Allow interrupting the task when memory is short."})",
     .example = "false"},
    {.key = TaskKey::Priority,
     .name = "priority",
     .take = take<&Asked::priority, model::parse_priority>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "whole number",
     .fallback = "0",
     .schema = R"({"anyOf": [{"type": "integer", "minimum": -1000, "maximum": 1000},
                 {"type": "string"}],
       "description": "Waiting tasks with larger numbers start first."})",
     .example = "10"},
    {.key = TaskKey::Signal,
     .name = "signal",
     .take = take<&Asked::signal, parse_early_signal>,
     .placeholders = false,
     .in_fingerprint = false,
     .type = "`USR1@120`",
     .fallback = "none",
     .schema = R"({"$ref": "#/definitions/signal"})",
     .example = "USR1@120"},
    {.key = TaskKey::Checkpoint,
     .name = "checkpoint",
     .take = take<&Asked::checkpoint, settings::parse_flag>,
     .placeholders = false,
     .in_fingerprint = false,
     .type = "true, false",
     .fallback = "false",
     .schema = R"({"type": "boolean",
       "description": "The task saves checkpoints, and a retry continues from them."})",
     .example = "true"},
    {.key = TaskKey::Cpus,
     .name = "cpus",
     .take = take<&Asked::cpus, settings::parse_cpus>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "number",
     .fallback = "1, or that of its ranks or workers",
     .schema = R"({"$ref": "#/definitions/number"})",
     .example = "0.5"},
    {.key = TaskKey::Disk,
     .name = "disk",
     .take = take<&Asked::disk, parse_bytes>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "[size](#sizes)",
     .fallback = "0",
     .schema = R"({"$ref": "#/definitions/size",
       "description": "Disk space of the run that must be free, and is reserved."})",
     .example = "20GB"},
    {.key = TaskKey::Gpus,
     .name = "gpus",
     .take = take<&Asked::gpus, settings::parse_gpus>,
     .placeholders = true,
     .in_fingerprint = true,
     .type = "number",
     .fallback = "0",
     .schema = R"({"$ref": "#/definitions/gpuCount"})",
     .example = "2"},
    {.key = TaskKey::GpuMemory,
     .name = "gpu-memory",
     .take = take<&Asked::gpu_memory, settings::parse_gpu_memory>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "size, `at least` a size, `auto`",
     .fallback = "",
     .schema = R"({"anyOf": [{"$ref": "#/definitions/size"}, {"$ref": "#/definitions/atLeast"},
       {"const": "auto"}]})",
     .example = "auto"},
    {.key = TaskKey::GpuMemoryLimit,
     .name = "gpu-memory-limit",
     .take = take<&Asked::gpu_memory_limit, settings::parse_gpu_memory_limit>,
     .placeholders = false,
     .in_fingerprint = false,
     .type = "`none`, `soft`, `hard`",
     .fallback = "`soft`",
     .schema = R"({"enum": ["none", "soft", "hard"],
       "description": "Cap the task's memory on a shared GPU at what is not reserved for other tasks."})",
     .example = "hard"},
    {.key = TaskKey::GpuUtilization,
     .name = "gpu-utilization",
     .take = take<&Asked::gpu_utilization, settings::parse_share>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "share",
     .fallback = "",
     .schema = R"({"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                   {"type": "string"}],
       "description": "Share of a GPU's compute that the task uses when it runs there alone: 40% or 0.4."})",
     .example = "40%"},
    {.key = TaskKey::MaxPerGpu,
     .name = "max-per-gpu",
     .take = take<&Asked::max_per_gpu, settings::parse_max_per_gpu>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "number",
     .fallback = "[`scheduler.max-per-gpu`](configuration.md)",
     .schema = R"({"anyOf": [{"type": "integer", "minimum": 0, "maximum": 32}, {"type": "string"}],
       "description": "Maximum number of tasks on the task's GPU, itself included; 0: unlimited."})",
     .example = "2"},
    {.key = TaskKey::Device,
     .name = "device",
     .take = take<&Asked::device, settings::parse_device>,
     .placeholders = true,
     .in_fingerprint = true,
     .type = "`cpu`, `cuda`, `cuda:<index>`",
     .fallback = "",
     .schema = R"({"$ref": "#/definitions/device", "description": "cpu, cuda or cuda:<index>."})",
     .example = "cuda:1"},
    {.key = TaskKey::Where,
     .name = "where",
     .take = take<&Asked::where, model::parse_site_wish>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "`{machine: 'lab*', gpu: 'H100'}`",
     .fallback = "anywhere",
     .schema = R"({"$ref": "#/definitions/where",
       "description": "Allowed machines and GPUs, by name."})",
     .example = "{machine: 'lab*'}"},
    {.key = TaskKey::Duration,
     .name = "duration",
     .take = take<&Asked::duration, parse_duration>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "[time](#times)",
     .fallback = "what was learned",
     .schema = R"({"$ref": "#/definitions/duration"})",
     .example = "10m"},
    {.key = TaskKey::TimeLimit,
     .name = "time-limit",
     .take = take<&Asked::time_limit, parse_duration>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "[time](#times)",
     .fallback = "0",
     .schema = R"({"$ref": "#/definitions/duration"})",
     .example = "1h"},
    {.key = TaskKey::Retries,
     .name = "retries",
     .take = take<&Asked::retries, parse_retries>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "number",
     .fallback = "0",
     .schema = R"({"$ref": "#/definitions/retries",
       "description": "Number of retries after a non-zero exit code, a signal, or a failed start."})",
     .example = "2"},
    {.key = TaskKey::OomRetries,
     .name = "oom-retries",
     .take = take<&Asked::oom_retries, parse_retries>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "number",
     .fallback = "2",
     .schema = R"({"$ref": "#/definitions/retries",
       "description": "Number of retries after running out of memory."})",
     .example = "5"},
    {.key = TaskKey::RetryOn,
     .name = "retry-on",
     .take = take<&Asked::retry_on_time_limit, parse_retry_on>,
     .placeholders = false,
     .list = true,
     .in_fingerprint = false,
     .type = "`[time-limit]`",
     .fallback = "`[]`",
     .schema = R"({"anyOf": [{"const": "time-limit"},
       {"type": "array", "items": {"enum": ["time-limit"]}}],
       "description": "Further outcomes that are retried like a failure."})",
     .example = "[time-limit]"},
    {.key = TaskKey::RetryDelay,
     .name = "retry-delay",
     .take = take<&Asked::retry_delay, parse_duration>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "[time](#times)",
     .fallback = "0",
     .schema = R"({"$ref": "#/definitions/duration",
       "description": "Delay before the first retry: 30s, 5m; doubled for each further one, up to 1h. Default: 0."})",
     .example = "30s"},
    {.key = TaskKey::StartAfter,
     .name = "start-after",
     .take = take<&Asked::start_after, parse_delay>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "[time](#times)",
     .fallback = "0",
     .schema = R"({"$ref": "#/definitions/delay",
       "description": "Earliest start, counted from the start of the run."})",
     .example = "10m"},
    {.key = TaskKey::If,
     .name = "if",
     .take = take<&Asked::run_if, parse_run_if>,
     .placeholders = false,
     .in_fingerprint = false,
     .type = "`success()`, `failure()`, `always()`",
     .fallback = "`success()`",
     .schema =
         R"json({"enum": ["success()", "failure()", "always()", "success", "failure", "always"],
       "description": "Required outcome of all dependencies."})json",
     .example = "always()"},
    {.key = TaskKey::Ranks,
     .name = "ranks",
     .take = take<&Asked::ranks, settings::parse_ranks>,
     .placeholders = true,
     .in_fingerprint = true,
     .type = "number",
     .fallback = "one process",
     .schema = R"({"$ref": "#/definitions/ranks", "description": "Number of processes (ranks)."})",
     .example = "2"},
    {.key = TaskKey::Launcher,
     .name = "launcher",
     .take = nullptr,
     .placeholders = false,
     .in_fingerprint = true,
     .type = "`built-in`, `mpirun`, `torchrun`, `srun`, a list",
     .fallback = "`built-in`",
     .schema = R"({"anyOf": [{"enum": ["built-in", "mpirun", "torchrun", "srun"]},
       {"type": "array", "minItems": 1, "items": {"type": "string"},
        "contains": {"const": "{command}"}}],
       "description": "Launcher of the ranks: a name, or a command line with {ranks}, {port} and {command}."})",
     .example = "mpirun"},
    {.key = TaskKey::Workers,
     .name = "workers",
     .take = take<&Asked::workers, parse_workers>,
     .placeholders = true,
     .in_fingerprint = true,
     .type = "number, `{collector: 2, learner: 1}`",
     .fallback = "one process",
     .schema = R"({"$ref": "#/definitions/workers",
       "description": "Number of workers, or number of workers of each role."})",
     .example = "{collector: 2, learner: 1}"},
    {.key = TaskKey::TwoPhase,
     .name = "two-phase",
     .take = take<&Asked::two_phase, settings::parse_flag>,
     .placeholders = false,
     .in_fingerprint = false,
     .type = "true, false",
     .fallback = "false",
     .schema = R"({"type": "boolean",
       "description": "Load data first, then wait for a device to train on."})",
     .example = "true"},
    {.key = TaskKey::Metrics,
     .name = "metrics",
     .take = nullptr,
     .placeholders = false,
     .in_fingerprint = false,
     .type = "pattern",
     .fallback = "",
     .schema = R"json({"type": "string",
       "description": "Read numbers from the output: loss=(?P<loss>[0-9.e-]+)"})json",
     .example = "'loss=(?P<loss>[0-9.e-]+)'"},
    {.key = TaskKey::Environment,
     .name = "env",
     .take = nullptr,
     .placeholders = true,
     .in_fingerprint = true,
     .type = "names with values",
     .fallback = "",
     .schema = R"({"$ref": "#/definitions/env"})",
     .example = "{A: 1}"},
    {.key = TaskKey::WorkingDirectory,
     .name = "working-directory",
     .take = nullptr,
     .placeholders = true,
     .in_fingerprint = true,
     .type = "path",
     .fallback = "the job file's directory",
     .schema = R"({"$ref": "#/definitions/text"})",
     .example = "data"},
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
