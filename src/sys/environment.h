// The environment of this process. Any thread, as long as none changes it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace trainyard::sys {

/// All environment variables, as NAME=value.
std::vector<std::string> environment();

/// Nothing where it is not set, or empty.
std::optional<std::string> variable(const char* name);

/// NAME=value; with nothing after the sign it is taken out. While there is one thread.
void set_variable(const std::string& name_and_value);

}  // namespace trainyard::sys
