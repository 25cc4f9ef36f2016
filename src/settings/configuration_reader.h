// The layers of the configuration, each put over the ones before it. Mistakes are gathered, so that
// a person sees those of all layers at once.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "settings/configuration.h"
#include "text/mistake.h"
#include "text/yaml_reader.h"

namespace trainyard::settings {

/// --config, or ./trainyard.yaml if there is one.
void apply_config_file(Configuration& configuration, const ConfigurationSources& sources,
                       text::MistakeList& mistakes);

/// Keys with values as they stand in a file: nested (`scheduler: {max-process: 4}`) or in one
/// (`scheduler.max-process: 4`). `directory` is what a relative workdir starts at. `task_keys` are
/// as in ConfigurationSources.
void apply_mapping(Configuration& configuration, const text::YamlDocument& document,
                   const text::YamlNode& node, const std::string& directory,
                   text::MistakeList& mistakes, std::span<const std::string_view> task_keys = {});

/// `machines`, as it stands in such a file, or on its own in a job file.
void apply_machines(Configuration& configuration, const text::YamlDocument& document,
                    const text::YamlNode& value, text::MistakeList& mistakes);

/// --set key=value, in order.
void apply_settings(Configuration& configuration, const ConfigurationSources& sources,
                    text::MistakeList& mistakes);

}  // namespace trainyard::settings
