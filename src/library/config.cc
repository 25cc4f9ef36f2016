#include "trainyard/config.h"

#include <algorithm>
#include <expected>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "library/settings.h"
#include "settings/configuration.h"

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
