// The configuration of a job file, in its layers.
#include <expected>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/path_name.h"
#include "job/job_state.h"
#include "job/program_as_job.h"
#include "job/task_keys.h"
#include "settings/configuration_reader.h"
#include "text/file_name.h"

namespace trainyard::job {
namespace {

/// A submission runs by the settings of the run: its own may only be about its own tasks.
void refuse_settings_of_the_run(const settings::Configuration& configuration,
                                const settings::Configuration& of_the_run,
                                text::MistakeList& mistakes) {
  for (std::size_t i = 0; i < settings::kSettingCount; ++i) {
    const auto setting = static_cast<settings::Setting>(i);
    const std::string_view key = settings::settings()[i].key;
    if (key.starts_with("task.") || configuration.origin(setting) == of_the_run.origin(setting)) {
      continue;
    }
    mistakes.add(configuration.mistake(
        setting, fmt::format("{}: cannot be changed by a submission, only by the run; a submission "
                             "can set the keys that start with 'task.'",
                             key)));
  }
}

/// Applies the job file's own configuration: `config`, and `machines`, which is also a key of it.
void apply_job_file(settings::Configuration& configuration, const text::YamlDocument& document,
                    const std::string& directory, text::MistakeList& mistakes,
                    std::span<const std::string_view> task_keys) {
  const text::YamlNode* const config = document.root()->find("config");
  const text::YamlNode* const machines = document.root()->find("machines");
  if (config != nullptr) {
    settings::apply_mapping(configuration, document, *config, directory, mistakes, task_keys);
  }
  if (machines == nullptr) return;
  const bool twice = config != nullptr && config->kind == text::YamlKind::Mapping &&
                     config->find("machines") != nullptr;
  if (twice) {
    mistakes.add(document.mistake(*machines, "machines: is also set under 'config'"));
  } else {
    settings::apply_machines(configuration, document, *machines, mistakes);
  }
}

}  // namespace

settings::Configuration layered(const LoadOptions& options, const text::YamlDocument& document,
                                const std::string& directory, text::MistakeList& mistakes) {
  const settings::ConfigurationSources sources{.config_file = options.config_file,
                                               .settings = options.settings,
                                               .current_directory = options.current_directory,
                                               .task_keys = keys_of_task_options()};
  settings::Configuration configuration;
  const auto& submission = options.submission;
  if (submission) {
    configuration = *submission->configuration;
  } else {
    settings::apply_config_file(configuration, sources, mistakes);
  }
  if (document.root() != nullptr && document.root()->kind == text::YamlKind::Mapping) {
    apply_job_file(configuration, document, directory, mistakes, sources.task_keys);
  }
  settings::apply_settings(configuration, sources, mistakes);
  if (submission) {
    refuse_settings_of_the_run(configuration, *submission->configuration, mistakes);
  }
  return configuration;
}

std::expected<settings::Configuration, text::Mistakes> Job::configuration_of(
    const std::string& text, const LoadOptions& options) {
  text::MistakeList mistakes;
  const std::string path = absolute_path(options.job_file, options.current_directory);
  const text::YamlDocument document(text, options.job_file, options.line_names);
  mistakes.add(document.mistakes());
  settings::Configuration configuration =
      layered(options, document, std::filesystem::path(path).parent_path().string(), mistakes);
  if (!mistakes.empty())
    return std::unexpected(take_mistakes(std::move(mistakes), options, document));
  return configuration;
}

}  // namespace trainyard::job
