// A command that runs a script in Python, split into its parts, so that a process that has imported
// modules for it can run the script.
//
// Knows as much of the shell as such a command needs: words and quotes. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace trainyard::text {

struct PythonCommand {
  std::vector<std::string> arguments;
  std::size_t interpreter = 0;  ///< The number of arguments of the interpreter: python3 -u.
  /// The first directory for its imports, relative to its current directory; empty: the current
  /// directory, wherever that is.
  std::string directory;
};

/// The words of a text for the shell that is nothing but words and quotes. The error is the end of
/// a sentence that starts with the command: "has a '|', which is for the shell".
Result<std::vector<std::string>> words_of_command(std::string_view text);

/// Reads a program with its arguments, or one text for the shell that is nothing but words. The
/// program is a script, -m module or -c text. The error is the end of a sentence, like that of
/// words_of_command().
Result<PythonCommand> read_python_command(std::vector<std::string> arguments);
Result<PythonCommand> read_python_command(std::string_view text);

/// The program that a text for the shell starts, if the shell does nothing else: its first word is
/// plain, and no other command follows. Redirections, its other words, and an 'exec' before it do
/// not matter. Empty otherwise.
std::string program_of_command(std::string_view text);

/// Whether a word is more than the plain name of a program, so that a shell has to read it to run
/// it: "./train | tee log".
bool needs_shell(const std::string& word);

/// Whether a text is the name of a module: torch.nn.
bool is_python_module(std::string_view name);

}  // namespace trainyard::text
