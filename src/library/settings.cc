#include "library/settings.h"

#include <algorithm>
#include <expected>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

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

namespace trainyard {

Result<Config> Config::load(std::string file) {
  Config config;
  config.file_ = std::move(file);
  const Result<settings::Configuration> checked = library::settings_of(config);
  if (!checked) return std::unexpected(checked.error());
  return config;
}

Result<void> Config::set(std::string_view key, std::string_view value) {
  Config changed = *this;
  changed.settings_.push_back(fmt::format("{}={}", key, value));
  const Result<settings::Configuration> checked = library::settings_of(changed);
  if (!checked) return std::unexpected(checked.error());
  *this = std::move(changed);
  return {};
}

Result<std::string> Config::get(std::string_view key) const {
  const std::span<const settings::SettingInfo> all = settings::settings();
  const auto found = std::ranges::find_if(all, [key](const auto& it) { return it.key == key; });
  if (found == all.end()) return std::unexpected(Error{fmt::format("unknown setting '{}'", key)});
  const Result<settings::Configuration> in_force = library::settings_of(*this);
  if (!in_force) return std::unexpected(in_force.error());
  return in_force->text(static_cast<settings::Setting>(found - all.begin()));
}

}  // namespace trainyard
