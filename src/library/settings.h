// A Config as the configuration that it stands for.
#pragma once

#include "base/result.h"
#include "settings/configuration.h"
#include "trainyard/config.h"

namespace trainyard::library {

/// Reads its file, or ./trainyard.yaml. An error holds all mistakes, one a line.
Result<settings::Configuration> settings_of(const Config& config);

}  // namespace trainyard::library
