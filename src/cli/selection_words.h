// The one way to say on the command line which tasks are meant, and of which run.
#pragma once

#include <deque>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

/// For the notes of the help: how tasks and runs are written.
extern const char* const kSelectionHelp;

/// Help of the words, for a command that shows a whole run if no task is named.
extern const char* const kTasksOrRunHelp;
/// Help of the words, for a command that does nothing if no task is named.
extern const char* const kTasksNeededHelp;

/// Adds the words and `--run-dir` to a command. Both must outlive it. `help` is one line.
void add_selection(CLI::App& command, std::vector<std::string>& words, std::string& run_directory,
                   const std::string& help = kTasksOrRunHelp);

/// The typed words with marks: CLI11 takes '[xy]' for a list of one word, 'xy', where it is a
/// pattern. Such words are marked if the command is one of `app` that has the words above;
/// without_mark() restores them. `kept` outlives the result.
std::vector<const char*> with_kept_brackets(const CLI::App& app,
                                            const std::vector<const char*>& words,
                                            std::deque<std::string>& kept);
std::string without_mark(std::string word);

}  // namespace trainyard::cli
