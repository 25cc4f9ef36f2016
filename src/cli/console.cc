#include "cli/console.h"

#include <system_error>

#include <fmt/format.h>

#include "base/utf8.h"
#include "sys/files.h"
#include "sys/terminal.h"
#include "text/shell_quote.h"

namespace trainyard::cli {

bool print(std::string_view text) { return print_bytes(visible_lines(text)); }

bool print_bytes(std::string_view bytes) {
  const std::error_code error = sys::write_text(sys::kStandardOutput, bytes);
  if (error) fail(fmt::format("cannot write standard output: {}", error.message()));
  return !error;
}

ExitCode answer(std::string_view text) {
  return print(text) ? ExitCode::Success : ExitCode::TaskFailed;
}

ExitCode answer_bytes(std::string_view bytes) {
  return print_bytes(bytes) ? ExitCode::Success : ExitCode::TaskFailed;
}

std::string seen_from_here(const std::string& path) {
  const Result<std::string> here = sys::current_directory();
  if (!here || !path.starts_with(*here + "/")) return path;
  return path.substr(here->size() + 1);
}

std::string command_for_run(std::string_view words, const std::string& run_directory) {
  return text::quoted_command(
      fmt::format("trainyard {} {}", words, text::shell_word(seen_from_here(run_directory))));
}

ExitCode fail(std::string_view message, ExitCode code) {
  note(message);
  return code;
}

void note(std::string_view message) {
  sys::write_standard_error(fmt::format("trainyard: {}\n", message));
}

void warn(std::string_view message) {
  sys::write_standard_error(fmt::format("trainyard: warning: {}\n", message));
}

ExitCode fail(const Error& error, ExitCode code) {
  note(error.message);
  for (const std::string& other : error.others) note(other);
  return code;
}

ExitCode fail(const text::Mistakes& mistakes) {
  std::string text;
  for (const text::Mistake& mistake : mistakes) {
    text += fmt::format("trainyard: {}\n", text::to_text(mistake));
  }
  if (mistakes.size() > 1)
    text += fmt::format("trainyard: {} mistakes, nothing was done\n", text::count(mistakes));
  sys::write_standard_error(text);
  return ExitCode::Usage;
}

std::string text_of(const text::Mistakes& mistakes) {
  std::string text;
  for (const text::Mistake& mistake : mistakes) {
    text += (text.empty() ? "" : "\n") + text::to_text(mistake);
  }
  return text;
}

}  // namespace trainyard::cli
