// What a machine has, in words. Pure.
#pragma once

#include <string>

#include "journal/reader.h"

namespace trainyard::report {

/// "16 CPUs, 64 GB, GPUs 0, 1 (NVIDIA H100)"; as the machine says it, for plain() to look at.
std::string machine_text(const journal::MachineRow& machine);

}  // namespace trainyard::report
