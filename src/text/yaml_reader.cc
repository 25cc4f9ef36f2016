#include "text/yaml_reader.h"

#include <algorithm>
#include <array>
#include <exception>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/emitterstyle.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "text/text_file.h"

namespace trainyard::text {
namespace {

constexpr std::size_t kBlockBytes = 256;  ///< Characters are counted once for each block of this
                                          ///< size.

/// Leaves the library's parser when continuing makes no sense. Does not leave this file.
struct Refused {
  YAML::Mark mark;
  std::string message;
};

Place place_of(const YAML::Mark& mark) {
  return {.line = mark.line + 1, .column = mark.column + 1};
}

std::string quoted_name(std::string_view text) {
  constexpr std::size_t kShown = 60;
  if (text.size() <= kShown) return fmt::format("'{}'", text);
  return fmt::format("'{}...'", text.substr(0, kShown));
}

struct PlainText {
  std::string_view of_library;
  std::string_view plain;
};

constexpr std::string_view kNoMapValue = "illegal map value";
constexpr std::string_view kMapEnd = "end of map not found";
constexpr std::string_view kEndInQuotes = "illegal EOF in scalar";
constexpr std::string_view kDocumentInQuotes = "illegal document indicator in scalar";
constexpr std::string_view kNoFlowEnd = "illegal flow end";
constexpr std::string_view kListNotClosed = "end of sequence flow not found";
constexpr std::string_view kMappingNotClosed = "end of map flow not found";
constexpr const char* kOpenQuote = "not valid YAML: this quote is not closed";

constexpr std::string_view kQuoteAlias =
    "'*' refers to a value marked with '&'; put other text that starts with '*' in quotes";
constexpr std::string_view kQuoteAnchor =
    "'&' marks a value for use with '*'; put other text that starts with '&' in quotes";

/// The library's messages that do not say what to change in the file.
constexpr std::array<PlainText, 16> kPlainTexts{{
    {.of_library = kNoMapValue,
     .plain = "wrong indentation, or no space after ':' here or in the line above"},
    {.of_library = "illegal block entry", .plain = "a '- ' cannot be here"},
    {.of_library = kNoFlowEnd, .plain = "']' or '}' does not close anything here"},
    {.of_library = "illegal tab when looking for indentation", .plain = "wrong indentation"},
    {.of_library = "end of sequence not found", .plain = "wrong indentation in a list"},
    {.of_library = kMapEnd, .plain = "wrong indentation, or text after a value"},
    {.of_library = kListNotClosed, .plain = "'[' is not closed"},
    {.of_library = kMappingNotClosed, .plain = "'{' is not closed"},
    {.of_library = kEndInQuotes, .plain = "a quote is not closed"},
    {.of_library = kDocumentInQuotes, .plain = "a quote is not closed before this line"},
    {.of_library = "unknown token",
     .plain = "a value that starts with a special character needs quotes"},
    {.of_library = "the referenced anchor is not defined", .plain = kQuoteAlias},
    {.of_library = "alias not found after *", .plain = kQuoteAlias},
    {.of_library = "illegal character found while scanning alias", .plain = kQuoteAlias},
    {.of_library = "anchor not found after &", .plain = kQuoteAnchor},
    {.of_library = "illegal character found while scanning anchor", .plain = kQuoteAnchor},
}};

/// The place of the quote that closes the text in quotes from `start` on; npos: none does.
std::size_t closing_quote(std::string_view text, std::size_t start) {
  const char quote = text[start];
  for (std::size_t at = start + 1; at < text.size(); ++at) {
    const bool is_escape = quote == '"' ? text[at] == '\\' : text.substr(at).starts_with("''");
    if (is_escape) {
      ++at;
    } else if (text[at] == quote) {
      return at;
    }
  }
  return std::string_view::npos;
}

/// The place of the bracket that closes the one at `start`; 0 where none does.
std::size_t closing_bracket(std::string_view text, std::size_t start) {
  std::string open;
  for (std::size_t at = start; at < text.size(); ++at) {
    const char byte = text[at];
    // Within a word it is an apostrophe.
    const bool begins = at > 0 && std::string_view(" \t\n[{,:").contains(text[at - 1]);
    if ((byte == '"' || byte == '\'') && begins) {
      at = closing_quote(text, at);
      if (at == std::string_view::npos) return 0;
    } else if (byte == '[' || byte == '{') {
      open += byte;
    } else if (byte == ']' || byte == '}') {
      if (open.back() != (byte == ']' ? '[' : '{')) return 0;
      open.pop_back();
      if (open.empty()) return at;
    }
  }
  return 0;
}

/// The missing character in a list or mapping in brackets that continues at `at` as it must not.
std::string_view missing_before(std::string_view text, std::size_t at) {
  const char before = at > 0 ? text[at - 1] : ' ';
  if (before == '=') return "write ': ' instead of '='";
  // As in {command: echo {lr}}: the value is plain text up to this brace.
  const std::size_t word = at > 0 ? text.find_last_not_of(' ', at - 1) : std::string_view::npos;
  const bool is_in_text =
      word != std::string_view::npos &&
      std::string_view(",:[]{}\"'\n").find(text[word]) == std::string_view::npos;
  if (is_in_text && text.substr(at).starts_with('{')) {
    return "text with '{' needs quotes, as in \"echo {lr}\",";
  }
  return before == ':' ? "a space is missing after ':'" : "',' is missing before this,";
}

constexpr std::array<std::string_view, 2> kAfterColon{kNoMapValue, kMappingNotClosed};

std::string_view in_plain_words(std::string_view message) {
  const auto found = std::ranges::find(kPlainTexts, message, &PlainText::of_library);
  return found == kPlainTexts.end() ? message : found->plain;
}

/// The library refuses both halves of the pair in which JSON writes a character above U+FFFF.
constexpr std::string_view kHalfCharacter = "invalid unicode: ";

bool starts_as_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

struct JsonError {
  std::size_t offset = 0;
  std::string message;
};

/// The first error of JSON syntax in a text; nothing: none.
std::optional<JsonError> json_error(std::string_view text) {
  // The library says "[...] parse error at line 1, column 9: syntax error while parsing value -
  // unexpected ...; last read: ...".
  constexpr std::string_view kStart = " - ";
  try {
    [[maybe_unused]] const auto read = nlohmann::json::parse(text);
    return std::nullopt;
  } catch (const nlohmann::json::parse_error& wrong) {
    std::string_view message = wrong.what();
    message.remove_prefix(std::min(message.find(kStart), message.size() - kStart.size()) +
                          kStart.size());
    return JsonError{.offset = wrong.byte == 0 ? 0 : wrong.byte - 1,
                     .message = std::string(message.substr(0, message.find("; last read")))};
  } catch (const nlohmann::json::exception&) {
    // A number that no double can hold. Its syntax is right.
    return std::nullopt;
  }
}

/// The value in a line that is not in quotes and has another ": " in it, as in "command: echo a:
/// b"; empty: there is none. In braces a value ends at a comma.
std::string_view value_with_colon(std::string_view text,
                                  const std::vector<std::size_t>& line_starts, int line) {
  constexpr std::string_view kSign = ": ";
  if (line < 0 || std::cmp_greater_equal(line, line_starts.size())) return {};
  std::string_view rest = text.substr(line_starts[static_cast<std::size_t>(line)]);
  rest = rest.substr(0, std::min(rest.find('\n'), rest.find(" #")));
  bool in_braces = false;
  while (true) {
    const std::size_t sign = rest.find(kSign);
    if (sign == std::string_view::npos) return {};
    in_braces = in_braces || rest.substr(0, sign).contains('{');
    rest.remove_prefix(sign + kSign.size());
    const std::size_t start = rest.find_first_not_of(' ');
    if (start == std::string_view::npos) return {};
    rest.remove_prefix(start);
    const std::string_view value =
        rest.substr(0, in_braces ? rest.find_first_of(",}") : std::string_view::npos);
    const bool is_plain =
        std::string_view("\"'[{&*|>").find(rest.front()) == std::string_view::npos;
    if (is_plain && value.contains(kSign)) return value.substr(0, value.find_last_not_of(' ') + 1);
  }
}

/// A line without its indentation, the '- ' of list items, and its comment.
struct LineText {
  std::size_t column = 0;  ///< Where `text` starts, in bytes.
  std::string_view text;
  bool is_item = false;
};

LineText text_of_line(std::string_view text, const std::vector<std::size_t>& line_starts,
                      std::size_t line) {
  constexpr std::string_view kBlank = " \t\r";
  std::string_view rest = text.substr(line_starts[line]);
  rest = rest.substr(0, std::min({rest.find('\n'), rest.find(" #"), rest.size()}));
  rest = rest.substr(0, rest.find_last_not_of(kBlank) + 1);
  LineText found{.column = std::min(rest.find_first_not_of(kBlank), rest.size())};
  while (rest.substr(found.column).starts_with("- ")) {
    found.is_item = true;
    found.column = rest.find_first_not_of(kBlank, found.column + 1);
  }
  found.text = rest.substr(found.column);
  if (found.text.starts_with('#')) found.text = {};
  return found;
}

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
  });
}

struct KeyWithoutColon {
  int line = 0;  ///< From 0.
  LineText key;
};

/// The word, alone in its line, with which the library joins the lines down to where it stops:
/// 'tasks' before '- command: x'. Starts at `line` and searches upwards, to the first line that has
/// a key with ':'. A word that is indented as the rest of a value is no key.
std::optional<KeyWithoutColon> key_without_colon(std::string_view text,
                                                 const std::vector<std::size_t>& line_starts,
                                                 int line) {
  std::optional<KeyWithoutColon> word;
  line = std::min(line, static_cast<int>(line_starts.size()) - 1);
  for (; line >= 0; --line) {
    const LineText found = text_of_line(text, line_starts, static_cast<std::size_t>(line));
    if (found.text.empty()) continue;
    if (word && (found.text.ends_with(':') || found.column >= word->key.column)) return word;
    if (found.text.ends_with(':') || found.text.contains(": ")) return std::nullopt;
    word.reset();
    if (is_word(found.text) && !found.is_item) word = KeyWithoutColon{.line = line, .key = found};
  }
  return word;
}

/// A hint that the library does not give for a line that is indented with a tab.
std::string_view tab_hint(std::string_view text, const std::vector<std::size_t>& line_starts,
                          int line) {
  if (line < 0 || std::cmp_greater_equal(line, line_starts.size())) return "";
  const std::string_view rest = text.substr(line_starts[static_cast<std::size_t>(line)]);
  const std::string_view indent = rest.substr(0, rest.find_first_not_of(" \t"));
  return indent.contains('\t') ? " (indent with spaces, not with tabs)" : "";
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i]->text == key) return items[i + 1];
  }
  return nullptr;
}

/// Receives the events of the library's parser, and makes the tree of them.
class YamlBuilder final : public YAML::EventHandler {
 public:
  explicit YamlBuilder(YamlDocument& document) : document_(document) {}

  void OnDocumentStart(const YAML::Mark& mark) override { document_start_ = last_ = mark; }
  void OnDocumentEnd() override {}

  void OnAnchor(const YAML::Mark& /*mark*/, const std::string& name) override {
    anchor_name_ = name;
  }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode& node = make(mark, YamlKind::Null);
    node.text = null_text(mark);
    // The library gives the start of the next node; a person looks for the key.
    const bool of_key = !open_.empty() && open_.back().node->kind == YamlKind::Mapping &&
                        open_.back().node->items.size() % 2 == 1;
    if (node.text.empty() && of_key) node.place = open_.back().node->items.back()->place;
    add_leaf(node, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    YamlNode& node = make(mark, YamlKind::Text);
    node.text = value;
    node.quoted = tag != "?" && !tag.empty();
    quote_ = node.quoted && is_quote(mark) ? std::optional(mark) : std::nullopt;
    add_leaf(node, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      throw Refused{.mark = mark, .message = "an alias cannot refer to its own parent"};
    count(mark, found->second.nodes);
    unused_texts_.erase(anchor);
    attach_alias(mark, *found->second.node, found->second.height);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    check_tag(mark, tag);
    open(make(mark, YamlKind::List), anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    check_tag(mark, tag);
    open(make(mark, YamlKind::Mapping), anchor);
  }
  void OnMapEnd() override {
    check_keys(*open_.back().node);
    follow_merge_keys(*open_.back().node);
    close();
  }

  /// Refuses each text without quotes that '&' marks and no '*' uses: a command such as "&x y", of
  /// which only "y" would be left.
  void check_anchors() {
    for (const auto& [anchor, text] : unused_texts_) {
      const std::string whole =
          fmt::format("&{}{}{}", text.name, text.node->text.empty() ? "" : " ", text.node->text);
      complain(*text.node,
               fmt::format("no '*{0}' uses the value that '&{0}' marks; put text that starts with "
                           "'&' in quotes{1}",
                           text.name, whole.contains('\'') ? "" : ", as in " + quoted_name(whole)));
    }
  }

  [[nodiscard]] YAML::Mark last() const { return last_; }
  [[nodiscard]] YAML::Mark document_start() const { return document_start_; }

  /// The quote that the rest of the file is in. The library takes the end of the file for its end.
  [[nodiscard]] std::optional<YAML::Mark> open_quote() const {
    return quote_ && end_of_quote() == std::string_view::npos ? quote_ : std::nullopt;
  }

  /// Names the open list or mapping in brackets for which the library misses a bracket; empty:
  /// there is none, or another error.
  [[nodiscard]] std::string open_bracket(const YAML::Exception& wrong) const {
    const bool is_missing =
        wrong.msg == kNoFlowEnd || wrong.msg == kListNotClosed || wrong.msg == kMappingNotClosed;
    if (!is_missing || !document_.line_names_.empty()) return "";
    for (auto each = open_.rbegin(); each != open_.rend(); ++each) {
      const Place place = each->node->place;
      const auto line = static_cast<std::size_t>(place.line - 1);
      if (line >= document_.line_starts_.size()) continue;
      const std::size_t at =
          document_.line_starts_[line] + static_cast<std::size_t>(place.column - 1);
      const char bracket = at < document_.text_.size() ? document_.text_[at] : ' ';
      if (bracket != '[' && bracket != '{') continue;
      // The library may have read a bracket after this one without reporting it yet.
      const std::size_t next = document_.text_.find_first_of("[{", at + 1);
      if (wrong.msg == kNoFlowEnd && std::cmp_less(next, wrong.mark.pos)) return "";
      const Mistake mistake = document_.mistake(place, "");
      const auto found = static_cast<std::size_t>(wrong.mark.pos);
      if (closing_bracket(document_.text_, at) > found) {
        return fmt::format("{} in the '{}' at {}:{}", missing_before(document_.text_, found),
                           bracket, mistake.line, mistake.column);
      }
      return fmt::format("the '{}' at {}:{} is not closed", bracket, mistake.line, mistake.column);
    }
    return "";
  }

  /// Names the quote that may be the cause of an error that the library finds further down.
  [[nodiscard]] std::string quote_hint(const YAML::Exception& wrong) const {
    const bool is_in_quotes = wrong.msg == kEndInQuotes || wrong.msg == kDocumentInQuotes;
    if (is_in_quotes) return fmt::format(" (it opens in line {} or below)", last_.line + 1);
    if (!quote_) return "";
    const auto start = static_cast<std::size_t>(quote_->pos);
    const std::string_view quoted =
        std::string_view(document_.text_).substr(start, end_of_quote() - start);
    const auto lines = std::ranges::count(quoted, '\n');
    const bool ends_here = lines > 0 && wrong.mark.line == quote_->line + lines;
    return ends_here ? fmt::format(" (is the quote in line {} closed?)", quote_->line + 1) : "";
  }

 private:
  struct Open {
    YamlNode* node = nullptr;
    YAML::anchor_t anchor = 0;
    std::size_t nodes_before = 0;
    std::size_t height = 1;
  };
  struct Anchored {
    const YamlNode* node = nullptr;
    std::size_t nodes = 0;   ///< With its own aliases written out.
    std::size_t height = 1;  ///< The depth of its tree.
  };

  struct UnusedText {
    std::string name;
    const YamlNode* node = nullptr;
  };

  YamlNode& make(const YAML::Mark& mark, YamlKind kind) {
    last_ = mark;
    count(mark, 1);
    YamlNode& node = document_.nodes_.emplace_back();
    node.kind = kind;
    node.place = place_of(mark);
    return node;
  }

  void count(const YAML::Mark& mark, std::size_t nodes) {
    nodes_ += nodes;
    if (nodes_ <= YamlDocument::kNodesMax) return;
    throw Refused{.mark = mark,
                  .message = fmt::format(
                      "the file is too large: more than {} parts with its aliases expanded",
                      YamlDocument::kNodesMax)};
  }

  void open(YamlNode& node, YAML::anchor_t anchor) {
    open_.push_back({.node = &node, .anchor = anchor, .nodes_before = nodes_ - 1});
    check_depth(last_, 0);
  }

  void close() {
    const Open done = open_.back();
    open_.pop_back();
    remember(done.anchor,
             {.node = done.node, .nodes = nodes_ - done.nodes_before, .height = done.height});
    attach(*done.node, done.height);
  }

  void add_leaf(YamlNode& node, YAML::anchor_t anchor) {
    remember(anchor, {.node = &node, .nodes = 1});
    if (anchor != YAML::NullAnchor && !node.quoted) {
      unused_texts_[anchor] = {.name = anchor_name_, .node = &node};
    }
    attach(node, 1);
  }

  void remember(YAML::anchor_t anchor, const Anchored& what) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = what;
  }

  void attach_alias(const YAML::Mark& mark, const YamlNode& node, std::size_t height) {
    check_depth(mark, height);
    attach(node, height);
  }

  void check_depth(const YAML::Mark& mark, std::size_t height) const {
    if (open_.size() + height <= YamlDocument::kDepthMax) return;
    throw Refused{.mark = mark,
                  .message = fmt::format("nested more than {} deep", YamlDocument::kDepthMax)};
  }

  void attach(const YamlNode& node, std::size_t height) {
    if (open_.empty()) {
      document_.root_ = &node;
      return;
    }
    open_.back().node->items.push_back(&node);
    open_.back().height = std::max(open_.back().height, height + 1);
  }

  void complain(const YamlNode& node, std::string message) {
    if (document_.mistakes_.size() >= MistakeList::kKeptMax) return;
    document_.mistakes_.push_back(document_.mistake(node, std::move(message)));
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    // The library gives text in quotes the tag '!', too.
    const bool known = tag.empty() || tag == "?" || (tag == "!" && byte_at(mark) != '!') ||
                       tag.starts_with("tag:yaml.org,2002:");
    if (!known) {
      throw Refused{
          .mark = mark,
          .message = fmt::format("unknown tag {}; put text that starts with '!' in quotes",
                                 quoted_name(tag))};
    }
  }

  void check_keys(YamlNode& mapping) {
    std::unordered_map<std::string_view, const YamlNode*> seen;
    for (std::size_t i = 0; i + 1 < mapping.items.size(); i += 2) {
      const YamlNode& key = *mapping.items[i];
      if (key.kind != YamlKind::Text) {
        // As in [{command: echo, {lr}}].
        const bool is_text = key.kind == YamlKind::Mapping;
        complain(key, is_text ? "a key must be a word; text with '{' needs quotes, as in \"{lr}\""
                              : "a key must be a word");
        continue;
      }
      const auto [first, fresh] = seen.emplace(key.text, &key);
      if (fresh || key.text == "<<") continue;
      complain(key, fmt::format("duplicate key {}; the first is in line {}", quoted_name(key.text),
                                first->second->place.line));
    }
    // A key that is not a word is reported once, here, and no other code needs to check for it.
    for (std::size_t i = 0; i + 1 < mapping.items.size();) {
      const auto at = mapping.items.begin() + static_cast<std::ptrdiff_t>(i);
      if (mapping.items[i]->kind == YamlKind::Text) {
        i += 2;
      } else {
        mapping.items.erase(at, at + 2);
      }
    }
  }

  void follow_merge_keys(YamlNode& mapping) {
    const auto is_merge = [](const YamlNode& key) { return key.text == "<<" && !key.quoted; };
    std::vector<const YamlNode*> own;
    std::vector<const YamlNode*> merged;
    for (std::size_t i = 0; i + 1 < mapping.items.size(); i += 2) {
      auto& where = is_merge(*mapping.items[i]) ? merged : own;
      where.push_back(mapping.items[i]);
      where.push_back(mapping.items[i + 1]);
    }
    if (merged.empty()) return;
    mapping.items = std::move(own);
    std::unordered_set<std::string_view> has;
    for (std::size_t i = 0; i < mapping.items.size(); i += 2) has.insert(mapping.items[i]->text);
    for (std::size_t i = 0; i < merged.size(); i += 2) {
      const YamlNode& from = *merged[i + 1];
      if (from.kind == YamlKind::List) {
        for (const YamlNode* one : from.items) merge(mapping, has, *one, *merged[i]);
      } else {
        merge(mapping, has, from, *merged[i]);
      }
    }
  }

  void merge(YamlNode& into, std::unordered_set<std::string_view>& has, const YamlNode& from,
             const YamlNode& key) {
    if (from.kind != YamlKind::Mapping) {
      complain(key, "'<<' must be a mapping, as in '<<: *defaults'");
      return;
    }
    for (std::size_t i = 0; i + 1 < from.items.size(); i += 2) {
      if (!has.insert(from.items[i]->text).second) continue;
      into.items.push_back(from.items[i]);
      into.items.push_back(from.items[i + 1]);
    }
  }

  /// The library does not say what stood there, and `null` as a value of a matrix is a word.
  [[nodiscard]] std::string null_text(const YAML::Mark& mark) const {
    constexpr std::array<std::string_view, 4> kWords{"null", "Null", "NULL", "~"};
    if (mark.pos < 0 || static_cast<std::size_t>(mark.pos) >= document_.text_.size()) return "";
    const std::string_view rest =
        std::string_view(document_.text_).substr(static_cast<std::size_t>(mark.pos));
    for (const std::string_view word : kWords) {
      if (rest.starts_with(word)) return std::string(word);
    }
    return "";
  }

  [[nodiscard]] bool is_quote(const YAML::Mark& mark) const {
    return byte_at(mark) == '"' || byte_at(mark) == '\'';
  }

  /// Nothing where a byte order mark shifts all places.
  [[nodiscard]] std::optional<char> byte_at(const YAML::Mark& mark) const {
    const std::string_view text = document_.text_;
    if (mark.pos < 0 || static_cast<std::size_t>(mark.pos) >= text.size()) return std::nullopt;
    if (text.starts_with("\xEF\xBB\xBF")) return std::nullopt;
    return text[static_cast<std::size_t>(mark.pos)];
  }

  [[nodiscard]] std::size_t end_of_quote() const {
    return closing_quote(document_.text_, static_cast<std::size_t>(quote_->pos));
  }

  YamlDocument& document_;
  std::optional<YAML::Mark> quote_;  ///< The beginning of the last text, if it is in quotes.
  YAML::Mark last_;
  YAML::Mark document_start_;
  std::size_t nodes_ = 0;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, Anchored> anchors_;
  std::string anchor_name_;  ///< The last one.
  std::map<YAML::anchor_t, UnusedText> unused_texts_;
};

YamlDocument::YamlDocument(std::string_view text, std::string file,
                           std::vector<std::string> line_names)
    : text_(text), file_(std::move(file)), line_names_(std::move(line_names)) {
  if (text_.size() > kTextFileMax) {
    mistakes_.push_back({.file = file_, .message = "is larger than 16 MiB"});
    return;
  }
  // Every binary file of a program or a model has some.
  if (text_.contains('\0')) {
    mistakes_.push_back({.file = file_, .message = "is not a text file"});
    return;
  }
  line_starts_.push_back(0);
  for (std::size_t at = text_.find('\n'); at != std::string::npos; at = text_.find('\n', at + 1)) {
    line_starts_.push_back(at + 1);
  }
  for (std::size_t at = 0, characters = 0; at <= text_.size(); at += kBlockBytes) {
    characters_before_block_.push_back(characters);
    characters += count_characters(std::string_view(text_).substr(at, kBlockBytes));
  }
  if (const auto bad = find_bad_byte(text_)) {
    mistakes_.push_back(mistake(place_at(bad->offset), bad->why));
    return;
  }
  if (!starts_as_json(text_) || !parse_as_json()) parse();
}

bool YamlDocument::parse_as_json() {
  if (!nlohmann::json::accept(text_)) return false;
  YamlBuilder builder(*this);
  constexpr auto kFlow = YAML::EmitterStyle::Flow;
  try {
    std::size_t line = 0;
    for (std::size_t at = 0; at < text_.size();) {
      while (line + 1 < line_starts_.size() && line_starts_[line + 1] <= at) ++line;
      YAML::Mark mark;
      mark.pos = static_cast<int>(at);
      mark.line = static_cast<int>(line);
      mark.column = static_cast<int>(at - line_starts_[line]);
      const char first = text_[at];
      std::size_t end = at + 1;
      if (first == '{') {
        builder.OnMapStart(mark, "", YAML::NullAnchor, kFlow);
      } else if (first == '}') {
        builder.OnMapEnd();
      } else if (first == '[') {
        builder.OnSequenceStart(mark, "", YAML::NullAnchor, kFlow);
      } else if (first == ']') {
        builder.OnSequenceEnd();
      } else if (first == '"') {
        end = closing_quote(text_, at) + 1;
        const auto value = nlohmann::json::parse(std::string_view(text_).substr(at, end - at));
        builder.OnScalar(mark, "!", YAML::NullAnchor, value.get<std::string>());
      } else if (!std::string_view(",: \t\r\n").contains(first)) {
        end = std::min(text_.find_first_of(",]} \t\r\n", at), text_.size());
        const std::string word = text_.substr(at, end - at);
        word == "null" ? builder.OnNull(mark, YAML::NullAnchor)
                       : builder.OnScalar(mark, "?", YAML::NullAnchor, word);
      }
      at = end;
    }
  } catch (const Refused& refused) {
    root_ = nullptr;
    mistakes_.push_back(mistake(place_of(refused.mark), refused.message));
  }
  return true;
}

void YamlDocument::parse() {
  YamlBuilder builder(*this);
  const auto refuse = [this](const YAML::Mark& mark, const std::string& message) {
    root_ = nullptr;
    mistakes_.push_back(mistake(place_of(mark), message));
  };
  try {
    std::istringstream stream(text_);
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return;
    const YamlNode* const first = root_;
    if (parser.HandleNextDocument(builder)) {
      const YAML::Mark start = builder.document_start();
      const std::size_t line =
          std::min(static_cast<std::size_t>(start.line), line_starts_.size() - 1);
      refuse(start, std::string_view(text_).substr(line_starts_[line]).starts_with("---")
                        ? "a second document ('---') starts here; a file must contain one"
                        : "not valid YAML: text after the end of the first value; write keys with "
                          "values, as in 'name: train'");
      return;
    }
    root_ = first;
    if (const auto quote = builder.open_quote()) {
      refuse(*quote, kOpenQuote);
      return;
    }
    builder.check_anchors();
  } catch (const Refused& refused) {
    refuse(refused.mark, refused.message);
  } catch (const YAML::Exception& wrong) {
    if (const auto quote = builder.open_quote()) {
      refuse(*quote, kOpenQuote);
      return;
    }
    const bool may_be_colon = std::ranges::find(kAfterColon, wrong.msg) != kAfterColon.end();
    const std::string_view value =
        may_be_colon ? value_with_colon(text_, line_starts_, wrong.mark.line) : std::string_view();
    if (!value.empty()) {
      const bool is_in_braces = wrong.msg == kMappingNotClosed;
      refuse(wrong.mark, fmt::format("not valid YAML: text with ': ' needs quotes{}{}",
                                     value.contains('\'') ? "" : ", as in " + quoted_name(value),
                                     is_in_braces ? ", or ',' is missing before a key" : ""));
      return;
    }
    if (wrong.msg == kNoMapValue || wrong.msg == kMapEnd) {
      const int line = wrong.msg == kMapEnd ? wrong.mark.line : wrong.mark.line - 1;
      if (const auto found = key_without_colon(text_, line_starts_, line)) {
        YAML::Mark mark = wrong.mark;
        mark.line = found->line;
        mark.column = static_cast<int>(found->key.column);
        refuse(mark, fmt::format("not valid YAML: ':' is missing after {}",
                                 quoted_name(found->key.text)));
        return;
      }
    }
    if (wrong.msg.starts_with(kHalfCharacter) && starts_as_json(text_)) {
      // The library stops at a pair that JSON allows. The mistake that makes the file no JSON is
      // elsewhere.
      if (const auto error = json_error(text_)) {
        root_ = nullptr;
        mistakes_.push_back(mistake(place_at(error->offset), "not valid JSON: " + error->message));
        return;
      }
    }
    const std::string bracket = builder.open_bracket(wrong);
    refuse(wrong.mark,
           fmt::format("not valid YAML: {}{}{}",
                       bracket.empty() ? in_plain_words(wrong.msg) : std::string_view(bracket),
                       tab_hint(text_, line_starts_, wrong.mark.line), builder.quote_hint(wrong)));
  } catch (const std::exception& wrong) {
    // Nothing else is known to come out of the library; should it, the file is refused all the
    // same.
    refuse(builder.last(), fmt::format("cannot be read as YAML: {}", wrong.what()));
  }
}

namespace {

/// The message of a mistake in an option or in "the command", without the group and the task, which
/// the user did not write, and without the key, which the option names already: "'6' has no unit"
/// for "group 'a': memory: '6' has no unit".
std::string without_place(std::string_view option, std::string message) {
  constexpr std::string_view kGroup = "group '";
  constexpr std::string_view kEnd = "': ";
  const std::size_t end = message.find(kEnd);
  if (message.starts_with(kGroup) && end != std::string::npos) message.erase(0, end + kEnd.size());
  for (const std::string_view before : {"--", "the "}) {
    if (option.starts_with(before)) option.remove_prefix(before.size());
  }
  for (const std::string& place : {std::string("task 1: "), fmt::format("{}: ", option)}) {
    if (message.starts_with(place)) message.erase(0, place.size());
  }
  return message;
}

}  // namespace

Mistake YamlDocument::mistake(Place place, std::string message) const {
  if (!line_names_.empty()) {
    const int last = static_cast<int>(line_names_.size());
    const auto index = static_cast<std::size_t>(std::clamp(place.line, 1, last) - 1);
    return {.file = line_names_[index],
            .message = without_place(line_names_[index], std::move(message))};
  }
  if (place.line < 1 || line_starts_.empty()) return {.file = file_, .message = std::move(message)};
  const std::size_t index = std::min(static_cast<std::size_t>(place.line), line_starts_.size()) - 1;
  const std::size_t start = line_starts_[index];
  const std::size_t end =
      std::min(start + static_cast<std::size_t>(std::max(place.column, 1) - 1), text_.size());
  return {.file = file_,
          .line = place.line,
          .column = static_cast<int>(characters_before(end) - characters_before(start)) + 1,
          .message = std::move(message)};
}

Place YamlDocument::place_at(std::size_t offset) const {
  const auto after = std::ranges::upper_bound(line_starts_, offset);
  return {.line = static_cast<int>(after - line_starts_.begin()),
          .column = static_cast<int>(offset - *std::prev(after)) + 1};
}

std::size_t YamlDocument::characters_before(std::size_t offset) const {
  const std::size_t block = offset / kBlockBytes;
  const std::size_t start = block * kBlockBytes;
  return characters_before_block_[block] +
         count_characters(std::string_view(text_).substr(start, offset - start));
}

}  // namespace trainyard::text
