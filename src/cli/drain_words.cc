// The words of `trainyard drain` on the command line.
#include <algorithm>
#include <cstdint>
#include <expected>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/help_format.h"
#include "cli/value_kinds.h"
#include "hardware/gpu_watch.h"
#include "model/gpu_limits.h"
#include "model/resources.h"
#include "process/drain_file.h"
#include "process/promise_board.h"
#include "report/devices.h"
#include "sys/clock.h"
#include "sys/environment.h"
#include "text/shell_quote.h"

namespace trainyard::cli {
namespace {

struct DrainOptions {
  std::vector<std::string> gpus;  ///< "gpu:2"; none: shows the drained GPUs.
  std::string until;              ///< "18:00", "2h"; empty: until it is ended.
  bool now = false;               ///< Its running tasks are stopped.
  bool end = false;               ///< Tasks may start on them again.
};

constexpr std::int64_t kDaySeconds = 86'400;
constexpr std::int64_t kMinuteSeconds = 60;
constexpr std::int64_t kMilliseconds = 1'000;

std::int64_t now_unix_s() { return sys::unix_milliseconds() / kMilliseconds; }

/// "18:00" is the next time that it is so late; "2h" is in two hours.
Result<std::int64_t> moment_of(const std::string& text) {
  const std::string time = text == "24:00" ? "00:00" : text;
  const Result<model::GpuHours> clock =
      model::parse_hours(time + (time == "00:00" ? "-00:01" : "-00:00"));
  if (clock) {
    std::int64_t at = sys::last_midnight_unix_s() + clock->from_minute * kMinuteSeconds;
    if (at <= now_unix_s()) at += kDaySeconds;
    return at;
  }
  // "25:00" would be read as minutes and seconds, "12-24", a date, as days and hours.
  const bool is_clock = text.find_first_of(":-") != std::string::npos;
  const Result<Duration> length = parse_duration(text);
  if (!is_clock && length && *length > Duration{0})
    return now_unix_s() + length->count() / kMilliseconds;
  return std::unexpected(Error{
      fmt::format("--until {}: must be a time of day or a duration, as in 18:00 or 2h", text)});
}

/// "gpu:2", "2", "gpu:0:1" of a slice, or a UUID.
Result<model::Gpu> gpu_called(std::string_view name, const std::vector<model::Gpu>& gpus) {
  constexpr std::string_view kBegins = "gpu:";
  std::string_view label = name;
  if (label.starts_with(kBegins)) label.remove_prefix(kBegins.size());
  const auto found = std::ranges::find_if(gpus, [label](const model::Gpu& gpu) {
    return !gpu.uuid.empty() && (gpu.label() == label || gpu.uuid == label);
  });
  if (found != gpus.end()) return *found;
  std::string there;
  for (const model::Gpu& gpu : gpus) there += (there.empty() ? "gpu:" : ", gpu:") + gpu.label();
  return std::unexpected(Error{
      fmt::format("GPU '{}' not found{}", name,
                  there.empty() ? "; this machine has no GPU" : "; this machine has " + there)});
}

std::string drain_line(const model::Drain& drain, const std::vector<model::Gpu>& gpus) {
  const auto gpu = std::ranges::find(gpus, drain.uuid, &model::Gpu::uuid);
  const std::string label = gpu == gpus.end() ? drain.uuid : "GPU " + gpu->label();
  return fmt::format("{}: {}\n", label, report::drained_text(drain, sys::last_midnight_unix_s()));
}

ExitCode drain_command(const DrainOptions& options) {
  if (options.gpus.empty() && (options.end || options.now || !options.until.empty())) {
    std::string line = "trainyard drain gpu:0";
    if (!options.until.empty()) line += " --until " + text::shell_word(options.until);
    if (options.now) line += " --now";
    if (options.end) line += " --end";
    return fail(fmt::format("no GPU given: use {}; 'trainyard drain' alone shows the drained GPUs",
                            text::quoted_command(line)));
  }
  const std::vector<std::string> directories = process::PromiseBoard::usual_directories();
  Result<hardware::GpuWatch> watch = hardware::GpuWatch::start({.environment = sys::environment()});
  if (!watch) return fail(watch.error());
  const std::vector<model::Gpu>& gpus = watch->list().gpus;
  std::vector<model::Drain> drains = process::read_own_drains(directories);
  std::erase_if(drains, [now = now_unix_s()](const model::Drain& it) {
    return it.until_unix_s != 0 && it.until_unix_s <= now;
  });
  std::int64_t until = 0;
  if (!options.until.empty()) {
    const Result<std::int64_t> moment = moment_of(options.until);
    if (!moment) return fail(moment.error());
    until = *moment;
  }
  for (const std::string& name : options.gpus) {
    const Result<model::Gpu> gpu = gpu_called(name, gpus);
    if (!gpu) return fail(gpu.error());
    std::erase_if(drains, [&gpu](const model::Drain& it) { return it.uuid == gpu->uuid; });
    if (options.end) continue;
    drains.push_back({.uuid = gpu->uuid, .until_unix_s = until, .now = options.now});
  }
  if (!options.gpus.empty()) {
    const Result<void> written = process::write_own_drains(directories, drains);
    if (!written) return fail(written.error());
  }
  std::string text;
  for (const model::Drain& drain : drains) text += drain_line(drain, gpus);
  return answer(text.empty() ? "no GPU is drained\n" : text);
}

CLI::App* add_drain(CLI::App& app, DrainOptions& options) {
  CLI::App* drain = app.add_subcommand("drain", "Start no new tasks on a GPU");
  drain->group(command_groups::kMachine);
  drain->add_option("gpus", options.gpus, "GPUs: gpu:2 (default: list the drained ones)")
      ->type_name(value_kinds::kCards);
  constexpr const char* kDrain = "Drain";
  CLI::Option* until =
      drain
          ->add_option("--until", options.until,
                       "End of the drain: 18:00 or 2h\n(default: until drain --end)")
          ->group(kDrain)
          ->type_name(value_kinds::kTime);
  CLI::Option* now =
      drain->add_flag("--now", options.now, "Stop its tasks, too; they are retried on other GPUs");
  now->group(kDrain);
  drain->add_flag("--end", options.end, "Make the GPU available again")
      ->group(kDrain)
      ->excludes(until)
      ->excludes(now);
  drain->footer(
      "Examples:\n"
      "  trainyard drain gpu:2 --until 18:00\n"
      "  trainyard drain gpu:2 --now\n"
      "  trainyard drain gpu:2 --end\n"
      "\n"
      "Applies to all your runs on this machine; as root, to those of all users. A reboot undoes\n"
      "it. Exit codes: 0 done, 2 the command line is wrong.");
  return drain;
}

}  // namespace

Entry drain_entry() { return entry({"drain"}, add_drain, drain_command); }

}  // namespace trainyard::cli
