#include "yard/settings.h"

#include <expected>
#include <string>
#include <utility>

#include "base/result.h"
#include "config/configuration.h"
#include "config/mistake.h"
#include "io/files.h"
#include "trainyard/config.h"

namespace trainyard {

Result<Configuration> settings_of(const Config& config) {
  Result<std::string> here = io::current_directory();
  if (!here) return std::unexpected(std::move(here.error()));
  std::expected<Configuration, Mistakes> read = load_configuration(
      {.config_file = config.file(), .settings = config.settings(), .current_directory = *here});
  if (read) return std::move(*read);
  std::string text;
  for (const Mistake& mistake : read.error()) {
    text += (text.empty() ? "" : "\n") + to_text(mistake);
  }
  return std::unexpected(Error{std::move(text)});
}

}  // namespace trainyard
