#include "report/help_line.h"

#include <fmt/format.h>

#include "report/terminal_text.h"
#include "text/shell_quote.h"

namespace trainyard::report {

using Where = model::Help::Where;

std::string help_line(const model::Help& help, std::string_view run_directory) {
  if (help.where != Where::Resume) return help.line;
  return fmt::format("trainyard run --resume {} {}", text::shell_word(run_directory), help.line);
}

std::string help_text(const model::Help& help, std::string_view run_directory) {
  const std::string line = help_line(help, run_directory);
  switch (help.where) {
    case Where::Nowhere:
      return {};
    case Where::Shell:
      return fmt::format("for details, run: {}", line);
    case Where::Resume:
      return fmt::format(
          "to change this, stop the run and its running tasks (Ctrl-C or kill -INT) and type: {}",
          line);
    case Where::JobFile:
      return fmt::format("to change this, set in the job file and resume the run: {}", line);
  }
  return {};
}

std::string runs_again_text(const std::string& command, int tasks) {
  return fmt::format("{} runs {} again", text::quoted_command(plain(command)),
                     tasks == 1 ? "it" : "them");
}

std::string short_help_text(const model::Help& help) {
  switch (help.where) {
    case Where::Nowhere:
      return {};
    case Where::Shell:
      return fmt::format(" (see {})", text::quoted_command(help.line));
    case Where::Resume:
      return fmt::format(" (stop and resume with {})", text::quoted_command(help.line));
    case Where::JobFile:
      return fmt::format(" (job file: {})", text::quoted_command(help.line));
  }
  return {};
}

}  // namespace trainyard::report
