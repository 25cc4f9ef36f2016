// YAML with places: a tree of a file's content, with the line and column of every part, as typed
// (`1e-3` stays `1e-3`). A JSON file is read as JSON.
//
// Not a checker of job files: it knows YAML alone. Bounded: a file that would grow without end
// through aliases is a mistake, as is one that is nested too deeply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/mistake.h"

namespace trainyard::text {

enum class YamlKind : std::uint8_t { Null, Text, List, Mapping };

/// A place in a file. Columns are counted in bytes until they are shown to a person.
struct Place {
  int line = 0;    ///< From 1; 0 for the whole file.
  int column = 0;  ///< From 1.
};

struct YamlNode {
  YamlKind kind = YamlKind::Null;
  bool quoted = false;  ///< A text in quotes, or a block: never a number, a range, or nothing.
  Place place;
  std::string text;                    ///< Text: as typed. Null: the typed "null", "~" or nothing.
  std::vector<const YamlNode*> items;  ///< List: its items. Mapping: key, value, key, value, ...

  /// The value of a key of a mapping; nullptr when it has none.
  [[nodiscard]] const YamlNode* find(std::string_view key) const;
};

class YamlDocument {
 public:
  static constexpr std::size_t kNodesMax = 2'000'000;  ///< With aliases written out.
  static constexpr std::size_t kDepthMax = 64;

  /// Reads one document. Merge keys (`<<: *defaults`) are followed. `file` is the name of the text
  /// in mistakes. Never fails: errors are in mistakes(). `line_names`: for text that is not in a
  /// file, the names in mistakes instead of the file and each line of it; empty: file and line.
  YamlDocument(std::string_view text, std::string file, std::vector<std::string> line_names = {});

  /// The root of the document; nullptr when it could not be read at all.
  [[nodiscard]] const YamlNode* root() const { return root_; }

  /// Whether it contains these bytes, one after the other.
  [[nodiscard]] bool has_written(std::string_view bytes) const { return text_.contains(bytes); }

  [[nodiscard]] const Mistakes& mistakes() const { return mistakes_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  /// Whether its keys were typed as options.
  [[nodiscard]] bool has_options() const { return !line_names_.empty(); }

  /// A mistake at a place, with its column in characters.
  [[nodiscard]] Mistake mistake(Place place, std::string message) const;
  [[nodiscard]] Mistake mistake(const YamlNode& node, std::string message) const {
    return mistake(node.place, std::move(message));
  }

 private:
  friend class YamlBuilder;

  void parse();
  /// False, having read nothing, where the text is not JSON.
  bool parse_as_json();
  [[nodiscard]] Place place_at(std::size_t offset) const;
  [[nodiscard]] std::size_t characters_before(std::size_t offset) const;

  std::string text_;
  std::string file_;
  std::vector<std::string> line_names_;
  std::vector<std::size_t> line_starts_;
  /// The number of characters before each block of the text. All mistakes of a file may be on one
  /// line, whose characters must not be counted for each of them.
  std::vector<std::size_t> characters_before_block_;
  Mistakes mistakes_;
  std::deque<YamlNode> nodes_;  ///< Stable: nodes point to each other.
  const YamlNode* root_ = nullptr;
};

}  // namespace trainyard::text
