// The one way to say on the command line which tasks are meant, and of which run.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

/// What is meant where no word says it.
struct Unsaid {
  std::string text = "the latest run under ./runs, one at work first";
};

/// Adds the words and `--run-dir` to a command. Both must outlive it.
void add_selection(CLI::App& command, std::vector<std::string>& words, std::string& run_directory,
                   const Unsaid& unsaid = {});

}  // namespace trainyard::cli
