// How the commands speak: answers on standard output, everything else on standard error.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/exit_code.h"
#include "text/mistake.h"

namespace trainyard::cli {

void print(std::string_view text);

/// A path as short as a person would write it here: without the current directory before it.
std::string seen_from_here(const std::string& path);

/// "trainyard: <message>" on standard error. Returns `code`, for the caller to return.
ExitCode fail(std::string_view message, ExitCode code = ExitCode::Usage);
ExitCode fail(const Error& error, ExitCode code = ExitCode::Usage);

/// All mistakes, one a line, and how many there are when they are several.
ExitCode fail(const text::Mistakes& mistakes);

}  // namespace trainyard::cli
