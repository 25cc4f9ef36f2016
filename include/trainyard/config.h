// The settings of a yard: how much of the machine it may use, how often it tries again. The keys
// are those of `trainyard config show` (docs/configuration.md). A value; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainyard/result.h"

namespace trainyard {

class Config {
 public:
  /// The defaults, and over them ./trainyard.yaml if there is one when the yard runs.
  Config() = default;

  /// The defaults, and over them that file. All mistakes in it at once, with their places.
  [[nodiscard]] static Result<Config> load(std::string file);

  /// Over everything else: set("scheduler.max-process", "4"). An error names the nearest right key.
  [[nodiscard]] Result<void> set(std::string_view key, std::string_view value);

  /// The value that is in force, as it was written; an error when there is no such key.
  [[nodiscard]] Result<std::string> get(std::string_view key) const;

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const std::vector<std::string>& settings() const { return settings_; }

 private:
  std::string file_;
  std::vector<std::string> settings_;  ///< "key=value", in order.
};

}  // namespace trainyard
