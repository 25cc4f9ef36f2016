// `trainyard config show` and `trainyard config init`.
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/path_name.h"
#include "base/result.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "hardware/capacity.h"
#include "job/job.h"
#include "job/task_keys.h"
#include "settings/configuration.h"
#include "sys/files.h"
#include "text/mistake.h"

namespace trainyard::cli {
namespace {

constexpr const char* kFileName = "trainyard.yaml";

std::expected<settings::Configuration, text::Mistakes> in_force(const ConfigOptions& options,
                                                                const std::string& here) {
  if (options.job_file.empty()) {
    return settings::load_configuration({.config_file = options.config_file,
                                         .settings = options.settings,
                                         .current_directory = here,
                                         .task_keys = job::keys_of_task_options()});
  }
  std::expected<job::Job, text::Mistakes> job = job::Job::load({.job_file = options.job_file,
                                                                .config_file = options.config_file,
                                                                .settings = options.settings,
                                                                .run_directory = {},
                                                                .current_directory = here,
                                                                .environment = {}},
                                                               hardware::read_capacity().capacity);
  if (!job) return std::unexpected(job.error());
  return job->configuration();
}

}  // namespace

ExitCode config_show_command(const ConfigOptions& options) {
  const Result<std::string> here = sys::current_directory();
  if (!here) return fail(here.error());
  std::error_code ignored;
  if (!options.job_file.empty() && !std::filesystem::exists(options.job_file, ignored)) {
    return fail(fmt::format(
        "job file '{}' not found; without a job file, 'trainyard config show' shows all settings",
        options.job_file));
  }
  const std::expected<settings::Configuration, text::Mistakes> configuration =
      in_force(options, *here);
  if (!configuration) return fail(configuration.error());
  return answer(options.json ? settings::show_json(*configuration)
                             : settings::show(*configuration));
}

ExitCode config_init_command(const ConfigOptions& options) {
  const Result<std::string> here = sys::current_directory();
  if (!here) return fail(here.error());
  const std::string path = absolute_path(kFileName, *here);
  const Result<std::optional<std::string>> old = sys::read_plain_file(path, mib(16));
  if (!options.force && (!old || *old)) {
    return fail("trainyard.yaml already exists; --force overwrites it");
  }
  const Result<void> written = sys::write_file_atomically(path, settings::commented_default());
  if (!written) return fail(written.error());
  return answer("wrote trainyard.yaml: every setting with its default and what it means\n");
}

}  // namespace trainyard::cli
