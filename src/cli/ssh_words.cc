#include "cli/ssh_words.h"

#include <string_view>

namespace trainyard::cli {
namespace {

/// A word in the quotes that rsync reads in its remote shell.
std::string in_quotes(std::string_view word) {
  if (word.find_first_of(" '\"") == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::vector<std::string> words_of_ssh(const settings::Configuration& configuration) {
  std::vector<std::string> command = settings::words(configuration, settings::Setting::AgentSsh);
  for (const char* const word : {"-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15"}) {
    command.emplace_back(word);
  }
  return command;
}

std::vector<std::string> words_of_rsync(const settings::Configuration& configuration) {
  std::string shell;
  for (const std::string& word : words_of_ssh(configuration)) {
    shell += (shell.empty() ? "" : " ") + in_quotes(word);
  }
  return {"rsync",          "--recursive",        "--links",      "--times",
          "--protect-args", "--modify-window=-1", "--timeout=60", "--rsh=" + shell};
}

}  // namespace trainyard::cli
