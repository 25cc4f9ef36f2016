// The keys of one mapping of a file: unknown ones are mistakes that name the nearest known one,
// values of the wrong type say what would be right.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "text/mistake.h"
#include "text/yaml_reader.h"

namespace trainyard::text {

/// Complains in the name of a part of a file.
class Complainer {
 public:
  Complainer(const YamlDocument& document, MistakeList& mistakes, std::string where)
      : document_(document), mistakes_(mistakes), where_(std::move(where)) {}

  /// `where` is put before the message: "group 'train': unknown key ...".
  void complain(const YamlNode& node, std::string_view message) const;

  [[nodiscard]] Complainer within(std::string_view part) const;

  [[nodiscard]] const YamlDocument& document() const { return document_; }
  [[nodiscard]] MistakeList& mistakes() const { return mistakes_; }
  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  const YamlDocument& document_;
  MistakeList& mistakes_;
  std::string where_;
};

/// Keys that belong to another part of the file, with what to say about each.
struct Elsewhere {
  std::string_view key;
  std::string_view message;
};

/// What to do about a key, with its value, whose name is like none that is known.
using KeyCure = std::function<std::string_view(const YamlNode& key, const YamlNode& value)>;

/// Complains about every key of the mapping that is not in `known`. Without a `cure`, the known keys
/// are listed.
void check_keys(const Complainer& to, const YamlNode& mapping,
                std::span<const std::string_view> known, std::span<const Elsewhere> elsewhere,
                const KeyCure& cure = {});

/// A single text or number as typed; complains of other values. `key` names it.
std::optional<std::string> read_single(const Complainer& to, const YamlNode& node,
                                       std::string_view key);

/// Arguments, variables and paths end at their first NUL, and the rest would be lost in silence.
constexpr std::string_view kNoNul = "has the character \\0, which cannot be passed to a program";

}  // namespace trainyard::text
