// Programs that bring something to several hosts, at work at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::cli {

struct HostProgram {
  std::string host;
  std::vector<std::string> command;
};

/// A host to which something could not be brought.
struct NotBrought {
  std::string host;
  std::string_view what;  ///< "the code"
  std::string why;        ///< From the program's own output, for people.
};

/// Runs them until all have ended, and says every few seconds for which it waits.
std::vector<NotBrought> bring(std::string_view what, const std::vector<HostProgram>& programs);

/// "lab1: cannot copy the code there: no such file".
std::string text_of(const NotBrought& it);

}  // namespace trainyard::cli
