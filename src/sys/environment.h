// The environment of this process. Any thread, as long as none changes it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace trainyard::sys {

/// All environment variables, as NAME=value.
std::vector<std::string> environment();

/// Nothing where it is not set, or empty.
std::optional<std::string> variable(const char* name);

/// NAME=value; with nothing after the sign it is taken out. While there is one thread.
void set_variable(const std::string& name_and_value);

/// This process is in a task of a run: trainyard has set variables for that
/// (model/set_variables.h).
bool is_in_task();

/// The environment of this process as it was before trainyard set variables for the task that it
/// belongs to, while this exists; then these have their values again. A variable that is set
/// meanwhile stays. Made and destroyed while no other thread reads the environment.
class OwnEnvironment {
 public:
  OwnEnvironment();
  OwnEnvironment(OwnEnvironment&&) = delete;
  OwnEnvironment& operator=(OwnEnvironment&&) = delete;
  ~OwnEnvironment();

 private:
  /// Names of variables that were changed, each with the value that it had for the task.
  std::vector<std::pair<std::string, std::optional<std::string>>> of_task_;
};

}  // namespace trainyard::sys
