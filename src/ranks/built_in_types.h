// The types of components that every registry has.
#pragma once

#include "trainyard/component_registry.h"

namespace trainyard::ranks {

/// `command`: a task is a command line; an Executor.
ComponentRegistry::Type command_type();

/// `python`: a class or a function of a Python script. If the executor is of this type, the ranks
/// are Python; it cannot be made here.
ComponentRegistry::Type python_type();
inline constexpr const char* kPythonType = "python";

}  // namespace trainyard::ranks
