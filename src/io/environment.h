// What the program was started with. Any thread, as long as none changes the environment.
#pragma once

#include <string>
#include <vector>

namespace trainyard::io {

/// All environment variables, as NAME=value.
std::vector<std::string> environment();

/// The names of all environment variables.
std::vector<std::string> environment_names();

}  // namespace trainyard::io
