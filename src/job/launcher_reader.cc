#include "job/launcher_reader.h"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "text/launcher_text.h"
#include "text/placeholder.h"

namespace trainyard::job {

std::optional<Text> read_launcher(const text::Complainer& to, const text::YamlNode& node) {
  std::string text = node.text;
  if (node.kind == text::YamlKind::List) {
    nlohmann::json list = nlohmann::json::array();
    for (const text::YamlNode* const item : node.items) list.push_back(item->text);
    text = list.dump();
  }
  const auto launcher = text::parse_launcher(text);
  if (launcher) return Text{.text = text::Template::plain(std::move(text)), .place = node.place};
  to.complain(node, fmt::format("launcher: {}", launcher.error().message));
  return std::nullopt;
}

}  // namespace trainyard::job
