#include "library/settings.h"

#include <expected>
#include <string>
#include <utility>

#include "sys/files.h"
#include "text/mistake.h"

namespace trainyard::library {

Result<settings::Configuration> settings_of(const Config& config) {
  Result<std::string> here = sys::current_directory();
  if (!here) return std::unexpected(std::move(here.error()));
  std::expected<settings::Configuration, text::Mistakes> read = settings::load_configuration(
      {.config_file = config.file(), .settings = config.settings(), .current_directory = *here});
  if (read && read->flag(settings::Setting::SmtpEnable)) {
    return std::unexpected(
        Error{"smtp.enable: reports are mailed by 'trainyard run', not by a program with the "
              "library; set it to false for this one"});
  }
  if (read) return std::move(*read);
  std::string text;
  for (const text::Mistake& mistake : read.error()) {
    text += (text.empty() ? "" : "\n") + text::to_text(mistake);
  }
  return std::unexpected(Error{std::move(text)});
}

}  // namespace trainyard::library
