#include "job/workers_reader.h"

#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "job/workers_text.h"

namespace trainyard::job {

std::optional<text::YamlNode> workers_as_text(const text::Complainer& to,
                                              const text::YamlNode& node) {
  text::YamlNode read = node;
  if (node.kind == text::YamlKind::List) {
    to.complain(node,
                "'workers' must be a number, or a number for each role, as in {collector: 2}");
    return std::nullopt;
  }
  if (node.kind != text::YamlKind::Mapping) return read;
  read.kind = text::YamlKind::Text;
  read.items.clear();
  for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const auto number = text::read_single(to, *node.items[i + 1], node.items[i]->text);
    if (!number) return std::nullopt;
    const std::string part = fmt::format("{}={}", node.items[i]->text, *number);
    // A number that is not a placeholder is checked here, where its place is known.
    if (const auto workers = parse_workers(part); !workers && !number->contains('{')) {
      to.complain(*node.items[i + 1], fmt::format("workers: {}", workers.error().message));
      return std::nullopt;
    }
    read.text += (read.text.empty() ? "" : ",") + part;
  }
  return read;
}

}  // namespace trainyard::job
