// The text of preload_server.py, which travels within the program.
#pragma once

#include <string_view>

namespace trainyard::io {

extern const std::string_view kPreloadSource;

}  // namespace trainyard::io
