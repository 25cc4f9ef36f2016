// The manual page, trainyard(1): made of the descriptions by which the command line is parsed, so
// it says what `--help` says.
#pragma once

#include <string>
#include <string_view>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

/// For man(1), in the language of its macros. `date` is in its footer, as in "2026-11-26".
std::string manual_page(const CLI::App& app, std::string_view date);

}  // namespace trainyard::cli
