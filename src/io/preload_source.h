// The text of preload_server.py, which travels within the program.
#pragma once

#include <string_view>

namespace trainyard::io {

std::string_view preload_source();

}  // namespace trainyard::io
