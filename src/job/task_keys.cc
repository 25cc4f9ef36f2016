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
    {.key = TaskKey::Preempt,
     .name = "preempt",
     .take = take<&Asked::preempt, settings::parse_flag>,
     .placeholders = false,
     .in_fingerprint = false,
     .type = "true, false",
     .fallback = "true",
     .schema = R"({"type": "boolean",
       "description": "Whether it may be interrupted when memory runs short."})",
     .example = "false"},
    {.key = TaskKey::Priority,
     .name = "priority",
     .take = take<&Asked::priority, settings::parse_priority>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "whole number",
     .fallback = "0",
     .schema = R"({"anyOf": [{"type": "integer", "minimum": -1000, "maximum": 1000},
                 {"type": "string"}],
       "description": "Of those that wait the larger goes first."})",
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
    {.key = TaskKey::Cpus,
     .name = "cpus",
     .take = take<&Asked::cpus, settings::parse_cpus>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "number",
     .fallback = "1, or that of its ranks",
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
       "description": "How much of the run's disk must be free for it, and is kept for it."})",
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
       "description": "Whether it is kept to what of a shared GPU nobody else was promised."})",
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
       "description": "How much of a GPU it uses when it is alone there: 40% or 0.4."})",
     .example = "40%"},
    {.key = TaskKey::MaxPerGpu,
     .name = "max-per-gpu",
     .take = take<&Asked::max_per_gpu, settings::parse_max_per_gpu>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "number",
     .fallback = "[`scheduler.max-per-gpu`](configuration.md)",
     .schema = R"({"anyOf": [{"type": "integer", "minimum": 0, "maximum": 32}, {"type": "string"}],
       "description": "How many tasks may be on its GPU with it, itself included; 0: any number."})",
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
     .fallback = "none",
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
       "description": "How often more it is tried after an exit code, a signal, or no start."})",
     .example = "2"},
    {.key = TaskKey::OomRetries,
     .name = "oom-retries",
     .take = take<&Asked::oom_retries, parse_retries>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "number",
     .fallback = "2",
     .schema = R"({"$ref": "#/definitions/retries",
       "description": "How often more it is tried after memory ran out."})",
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
       "description": "What 'retries' counts beside what the task did."})",
     .example = "[time-limit]"},
    {.key = TaskKey::RetryDelay,
     .name = "retry-delay",
     .take = take<&Asked::retry_delay, parse_duration>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "[time](#times)",
     .fallback = "0",
     .schema = R"({"$ref": "#/definitions/duration",
       "description": "How long the first retry waits; doubled each time, at most 1 h."})",
     .example = "30s"},
    {.key = TaskKey::StartAfter,
     .name = "start-after",
     .take = take<&Asked::start_after, parse_duration>,
     .placeholders = true,
     .in_fingerprint = false,
     .type = "[time](#times)",
     .fallback = "0",
     .schema = R"({"$ref": "#/definitions/duration",
       "description": "Starts no earlier than so long after the run began."})",
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
       "description": "What must have become of all that it needs for it to run."})json",
     .example = "always()"},
    {.key = TaskKey::Ranks,
     .name = "ranks",
     .take = take<&Asked::ranks, settings::parse_ranks>,
     .placeholders = true,
     .in_fingerprint = true,
     .type = "number",
     .fallback = "one process",
     .schema = R"({"$ref": "#/definitions/ranks", "description": "How many processes it is."})",
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
       "description": "Who starts its ranks: a name, or a command line with {ranks}, {port} and {command}."})",
     .example = "mpirun"},
    {.key = TaskKey::TwoPhase,
     .name = "two-phase",
     .take = take<&Asked::two_phase, settings::parse_flag>,
     .placeholders = false,
     .in_fingerprint = false,
     .type = "true, false",
     .fallback = "false",
     .schema = R"({"type": "boolean",
       "description": "It loads first, and then waits for a device to train on."})",
     .example = "true"},
    {.key = TaskKey::Metrics,
     .name = "metrics",
     .take = nullptr,
     .placeholders = false,
     .in_fingerprint = false,
     .type = "pattern",
     .fallback = "",
     .schema = R"json({"type": "string",
       "description": "Finds numbers in what it prints: loss=(?P<loss>[0-9.e-]+)"})json",
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

constexpr std::array<std::string_view, 7> kJobKeys{"name",   "run-dir",   "config", "try-first",
                                                   "notify", "on-finish", "groups"};
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

}  // namespace trainyard::job
