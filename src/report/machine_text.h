// The resources of a machine, in words. Pure.
#pragma once

#include <string>

#include "journal/reader.h"

namespace trainyard::report {

/// "16 CPUs, 64 GB, GPUs 0, 1 (NVIDIA H100)"; the names are the machine's own: pass the text to
/// plain().
std::string machine_text(const journal::MachineRow& machine);

}  // namespace trainyard::report
