// The one way to say on the command line which tasks are meant, and of which run.
#pragma once

#include <deque>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

/// What the words may be, for the help.
struct Unsaid {
  std::string text = "active run in ./runs, else latest";  ///< The default.
  bool needs_tasks = false;  ///< Without tasks, nothing is done to any.
};

/// For the notes of the help: how tasks and runs are written.
extern const char* const kSelectionHelp;

/// Adds the words and `--run-dir` to a command. Both must outlive it.
void add_selection(CLI::App& command, std::vector<std::string>& words, std::string& run_directory,
                   const Unsaid& unsaid = {});

/// CLI11 takes '[xy]' for a list of one word, 'xy', where it is a pattern. What was typed, with
/// such words marked where the command is one of `app` that has the words above; without_mark() has
/// them back. `kept` outlives what is returned.
std::vector<const char*> with_kept_brackets(const CLI::App& app,
                                            const std::vector<const char*>& words,
                                            std::deque<std::string>& kept);
std::string without_mark(std::string word);

}  // namespace trainyard::cli
