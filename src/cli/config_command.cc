// `trainyard config show` and `trainyard config init`.
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/bytes.h"
#include "base/path_name.h"
#include "base/result.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"
#include "hardware/capacity.h"
#include "job/job.h"
#include "job/task_keys.h"
#include "settings/configuration.h"
#include "sys/files.h"
#include "text/mistake.h"

namespace trainyard::cli {
namespace {

struct ConfigOptions {
  std::string job_file;  ///< For `show`: its `config:` is a layer; may be empty.
  std::string config_file;
  std::vector<std::string> settings;
  bool json = false;
  const CLI::App* init = nullptr;
  bool force = false;  ///< For `init`: write over a file that is there.
};

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

ExitCode config_show_command(const ConfigOptions& options) {
  const Result<std::string> here = sys::current_directory();
  if (!here) return fail(here.error());
  if (!options.job_file.empty() && !sys::exists(options.job_file)) {
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
  if (!options.force && !old) return fail(old.error());
  if (!options.force && *old) return fail("trainyard.yaml already exists; --force overwrites it");
  const Result<void> written = sys::write_file_atomically(path, settings::commented_default());
  if (!written) return fail(written.error());
  return answer("wrote trainyard.yaml: every setting with its default and what it means\n");
}

ExitCode config_command(const ConfigOptions& options) {
  return options.init->parsed() ? config_init_command(options) : config_show_command(options);
}

CLI::App* add_config(CLI::App& app, ConfigOptions& options) {
  CLI::App* config = app.add_subcommand("config", "Show or create the configuration");
  config->group(command_groups::kSetup);
  config->require_subcommand(1);
  config->footer(
      "Examples:\n"
      "  trainyard config show\n"
      "  trainyard config init\n"
      "  trainyard config init --force    # overwrites ./trainyard.yaml");
  CLI::App* const show =
      config->add_subcommand("show", "Show all settings, and where each was set");
  show->add_option("job", options.job_file, "Job file whose 'config:' section applies")
      ->type_name(value_kinds::kJobFile);
  add_json(*show, options.json);
  add_configuration(*show, options.config_file, options.settings);
  show->footer(
      "Examples:\n"
      "  trainyard config show\n"
      "  trainyard config show sweep.yaml --set scheduler.max-process=4 --json");
  CLI::App* const init = config->add_subcommand("init", "Write ./trainyard.yaml with the defaults");
  init->add_flag("--force", options.force, "Overwrite an existing file");
  init->footer(
      "Examples:\n"
      "  trainyard config init\n"
      "  trainyard config init --force");
  options.init = init;
  return config;
}

}  // namespace

Entry config_entry() { return entry({"config"}, add_config, config_command); }

}  // namespace trainyard::cli
