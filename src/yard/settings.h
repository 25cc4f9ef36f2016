// A Config as the configuration that it stands for.
#pragma once

#include "base/result.h"
#include "config/configuration.h"
#include "trainyard/config.h"

namespace trainyard {

/// Reads its file, or ./trainyard.yaml. An error holds all mistakes, one a line.
Result<Configuration> settings_of(const Config& config);

}  // namespace trainyard
