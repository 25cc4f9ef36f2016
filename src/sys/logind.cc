#include "sys/logind.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "sys/files.h"

namespace trainyard::sys {
namespace {

constexpr Bytes kConfigMax = mib(1);
constexpr std::string_view kKills = "KillUserProcesses=";

/// The last setting in the file; nothing if it has none.
std::optional<bool> kills_by(const std::string& path) {
  const std::string text = read_plain_file(path, kConfigMax).value_or("").value_or("");
  std::optional<bool> kills;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (!line.starts_with(kKills)) continue;
    const std::string_view value = line.substr(kKills.size());
    kills = value.starts_with("yes") || value.starts_with("true") || value.starts_with("1") ||
            value.starts_with("on");
  }
  return kills;
}

}  // namespace

bool ends_at_logout(const std::string& root, const std::string& user) {
  if (!user.empty() && exists(root + "/var/lib/systemd/linger/" + user)) return false;
  bool kills = false;
  // Later ones count over earlier ones, and what lies in the directories over the file.
  constexpr std::array<std::string_view, 3> kPlaces{"/usr/lib/systemd", "/run/systemd",
                                                    "/etc/systemd"};
  for (const std::string_view place : kPlaces) {
    const std::string file = fmt::format("{}{}/logind.conf", root, place);
    kills = kills_by(file).value_or(kills);
  }
  for (const std::string_view place : kPlaces) {
    const std::string directory = fmt::format("{}{}/logind.conf.d", root, place);
    std::vector<std::string> names = names_in(directory);
    std::ranges::sort(names);
    for (const std::string& name : names) {
      if (name.ends_with(".conf"))
        kills = kills_by(fmt::format("{}/{}", directory, name)).value_or(kills);
    }
  }
  return kills;
}

}  // namespace trainyard::sys
