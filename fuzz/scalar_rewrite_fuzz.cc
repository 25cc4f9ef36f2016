// Whatever a person has written: another value in the place of one changes that value and nothing
// else, or is refused; and the old value in its place again makes the text what it was.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/result.h"
#include "text/scalar_rewrite.h"
#include "text/yaml_reader.h"

namespace {

using trainyard::check;
using trainyard::Result;
using trainyard::text::ScalarEdit;
using trainyard::text::YamlDocument;
using trainyard::text::YamlKind;
using trainyard::text::YamlNode;

constexpr std::size_t kLeavesMax = 2'000;
constexpr std::size_t kEditsMax = 6;

/// A value, with the way to it.
struct Leaf {
  std::string path;
  std::string key;  ///< Whose value it is; empty: of no mapping.
  const YamlNode* node = nullptr;
};

void gather(const YamlNode& node, const std::string& path, const std::string& key,
            std::vector<Leaf>& leaves) {
  if (leaves.size() > kLeavesMax) return;
  leaves.push_back({.path = path, .key = key, .node = &node});
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const bool is_value = node.kind == YamlKind::Mapping && i % 2 == 1;
    gather(*node.items[i], fmt::format("{}/{}", path, i),
           is_value ? node.items[i - 1]->text : std::string(), leaves);
  }
}

std::vector<Leaf> leaves_of(const YamlDocument& document) {
  std::vector<Leaf> leaves;
  if (document.root() != nullptr) gather(*document.root(), "", "", leaves);
  return leaves;
}

void look_at(const std::vector<Leaf>& before, std::string_view rewritten, const ScalarEdit& edit) {
  const YamlDocument document(rewritten, "x");
  check(document.mistakes().empty(), "what comes out is YAML still");
  const std::vector<Leaf> after = leaves_of(document);
  check(before.size() == after.size(), "nothing comes and nothing goes");
  for (std::size_t i = 0; i < before.size(); ++i) {
    const YamlNode& old = *before[i].node;
    const YamlNode& now = *after[i].node;
    check(before[i].path == after[i].path && old.kind == now.kind && old.quoted == now.quoted,
          "everything stays where it is");
    if (old.text == now.text) continue;
    check(old.text == edit.from && now.text == edit.to && before[i].key == edit.key,
          "nothing changes but what was meant");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(*-reinterpret-cast): libFuzzer gives bytes, text is read.
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const YamlDocument document(text, "x");
  if (!document.mistakes().empty()) return 0;
  const std::vector<Leaf> leaves = leaves_of(document);
  if (leaves.size() > kLeavesMax) return 0;
  std::size_t tried = 0;
  for (const Leaf& leaf : leaves) {
    if (leaf.node->kind != YamlKind::Text || leaf.key.empty() || ++tried > kEditsMax) continue;
    const ScalarEdit edit{.place = leaf.node->place,
                          .key = leaf.key,
                          .from = leaf.node->text,
                          .to = tried % 2 == 0 ? "at least 1.5GB" : "7MB"};
    const Result<std::string> rewritten = trainyard::text::rewrite_scalars(text, "x", {edit});
    if (!rewritten) continue;
    look_at(leaves, *rewritten, edit);
    check(rewritten->size() + edit.from.size() == text.size() + edit.to.size(),
          "as many letters as the two differ");
    // A value is found again where it stood, whatever is written there.
    const bool plain = edit.from.find_first_not_of("0123456789.GMBkat") == std::string::npos;
    if (!plain) continue;
    const Result<std::string> back = trainyard::text::rewrite_scalars(
        *rewritten, "x",
        {{.place = edit.place, .key = edit.key, .from = edit.to, .to = edit.from}});
    check(back.has_value() && *back == text, "and back again");
  }
  return 0;
}
