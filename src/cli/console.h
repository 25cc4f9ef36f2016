// The output of the commands: answers on standard output, everything else on standard error.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/exit_code.h"
#include "text/mistake.h"

namespace trainyard::cli {

/// Prints text of whole lines on standard output. Characters that act on a terminal are escaped:
/// names of files and of tasks may contain them. If the text cannot be written, says so on standard
/// error and returns false.
bool print(std::string_view text);

/// Prints every byte unchanged: output of tasks, CSV, and text of report/ with colors, whose names
/// are safe to show already.
bool print_bytes(std::string_view bytes);

/// Prints piece by piece, until one cannot be written: that is said once.
class Printer {
 public:
  void print(std::string_view text) { works_ = works_ && cli::print(text); }
  void print_bytes(std::string_view bytes) { works_ = works_ && cli::print_bytes(bytes); }
  [[nodiscard]] bool works() const { return works_; }

 private:
  bool works_ = true;
};

/// Prints all that a command has to say: its last word.
ExitCode answer(std::string_view text);
ExitCode answer_bytes(std::string_view bytes);

/// A path as short as a person would write it here: without the current directory before it.
std::string seen_from_here(const std::string& path);

/// "'trainyard run --resume runs/x'" for the words "run --resume": a command for the run in this
/// directory, to be copied from a message.
std::string command_for_run(std::string_view words, const std::string& run_directory);

/// "trainyard: <message>" on standard error. Returns `code`, for the caller to return.
ExitCode fail(std::string_view message, ExitCode code = ExitCode::Usage);
/// A line for each mistake of the error.
ExitCode fail(const Error& error, ExitCode code = ExitCode::Usage);

/// Prints "trainyard: <message>" on standard error.
void note(std::string_view message);

/// "trainyard: warning: <message>" on standard error.
void warn(std::string_view message);

/// "trainyard: <mistake>" for each, one a line, and how many there are when they are several.
ExitCode fail(const text::Mistakes& mistakes);

/// A line each.
std::string text_of(const text::Mistakes& mistakes);

}  // namespace trainyard::cli
