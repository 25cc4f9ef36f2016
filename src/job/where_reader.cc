#include "job/where_reader.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace trainyard::job {
namespace {

constexpr std::array<std::string_view, 2> kWhereKeys{"machine", "gpu"};

}  // namespace

std::optional<text::YamlNode> where_as_text(const text::Complainer& to,
                                            const text::YamlNode& node) {
  text::YamlNode read = node;
  if (node.kind == text::YamlKind::Text) return read;
  if (node.kind != text::YamlKind::Mapping || node.items.empty()) {
    to.complain(node,
                "'where' must be names of machines or GPUs, as in {machine: 'lab*', gpu: 'H100'}");
    return std::nullopt;
  }
  check_keys(to.within("where"), node, kWhereKeys, {});
  read.kind = text::YamlKind::Text;
  read.items.clear();
  for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const std::string& key = node.items[i]->text;
    if (std::ranges::find(kWhereKeys, key) == kWhereKeys.end()) return std::nullopt;
    const auto pattern = text::read_single(to, *node.items[i + 1], key);
    if (!pattern) return std::nullopt;
    if (pattern->contains(',')) {
      to.complain(*node.items[i + 1],
                  fmt::format("where: '{}' must be a single pattern, without a comma", key));
      return std::nullopt;
    }
    read.text += fmt::format("{}{}={}", read.text.empty() ? "" : ",", key, *pattern);
  }
  return read;
}

}  // namespace trainyard::job
