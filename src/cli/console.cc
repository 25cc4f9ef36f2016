#include "cli/console.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/result.h"
#include "cli/exit_code.h"
#include "config/mistake.h"
#include "io/files.h"
#include "io/terminal.h"

namespace trainyard::cli {

void print(std::string_view text) { io::write_text(io::kStandardOutput, text); }

std::string seen_from_here(const std::string& path) {
  const Result<std::string> here = io::current_directory();
  if (!here || !path.starts_with(*here + "/")) return path;
  return path.substr(here->size() + 1);
}

ExitCode fail(std::string_view message, ExitCode code) {
  io::write_text(io::kStandardError, fmt::format("trainyard: {}\n", message));
  return code;
}

ExitCode fail(const Error& error, ExitCode code) { return fail(error.message, code); }

ExitCode fail(const Mistakes& mistakes) {
  std::string text;
  for (const Mistake& mistake : mistakes) text += to_text(mistake) + "\n";
  if (mistakes.size() > 1)
    text += fmt::format("trainyard: {} mistakes, nothing was run\n", count(mistakes));
  io::write_text(io::kStandardError, text);
  return ExitCode::Usage;
}

}  // namespace trainyard::cli
