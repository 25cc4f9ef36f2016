#include "wire/json_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/utf8.h"
#include "wire/result_text.h"

namespace trainyard::wire {
namespace {

constexpr std::size_t kPathCharactersMax = 80;
constexpr std::size_t kShownWordMax = 16;

/// " (and 2 more)"; empty for 0.
std::string and_more(std::size_t count) {
  return count > 0 ? fmt::format(" (and {} more)", count) : std::string();
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// Whether a number of valid form that does not fit into a double is too large for it, not too
/// close to 0.
bool too_large(std::string_view number) {
  if (number.front() == '-') number.remove_prefix(1);
  const std::size_t mark = number.find_first_of("eE");
  const std::string_view digits = number.substr(0, mark);
  std::int64_t exponent = 0;
  if (mark != std::string_view::npos) {
    std::string_view written = number.substr(mark + 1);
    if (written.front() == '+') written.remove_prefix(1);
    const auto [stop, status] =
        std::from_chars(written.data(), written.data() + written.size(), exponent);
    if (status != std::errc{}) return written.front() != '-';
  }
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits.find_first_of("123456789");
  check(first != std::string_view::npos, "a zero fits into a double");
  return static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first) + exponent > 0;
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::expected<CompactJson, JsonFault> scan() {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
    out_.reserve(text_.size());
    Step step = Step::Value;
    while (step == Step::Value) {
      step = begin_value();
      if (step == Step::Ended) step = end_value();
    }
    if (step == Step::Ended) {
      skip_spaces();
      if (at_ < text_.size()) {
        step = fault(fmt::format("expected the end after the JSON value, found {}", found()));
      }
    }
    if (step == Step::Fault) return std::unexpected(std::move(*fault_));
    return CompactJson{.text = without_dropped(), .mended = mended()};
  }

 private:
  /// The next thing: a value, something that may follow one that has ended, or nothing, as there
  /// is a fault.
  enum class Step : std::uint8_t { Value, Ended, Fault };

  /// An object or list whose end has not come.
  struct Open {
    bool object = false;
    std::size_t first_member = 0;  ///< Into members_; of objects.
    std::size_t index = 0;         ///< Used for lists.
  };
  /// A member of an open object, as places in out_.
  struct Member {
    std::size_t begin = 0;    ///< The opening quote of the key.
    std::size_t key_end = 0;  ///< Behind the closing one.
    std::size_t end = 0;      ///< Where the next member begins.
  };

  Step begin_value() {
    skip_spaces();
    const char c = peek();
    if (c == '{' || c == '[') return begin_container(c == '{');
    if (c == '"') return scan_string() ? Step::Ended : Step::Fault;
    if (c == '-' || is_digit(c)) return scan_number();
    return scan_word();
  }

  Step begin_container(bool object) {
    if (open_.size() == static_cast<std::size_t>(kJsonDepthMax)) {
      JsonFault deep = place(at_, fmt::format("nested deeper than {}", kJsonDepthMax));
      deep.path = path();
      fault_ = std::move(deep);
      return Step::Fault;
    }
    open_.push_back({.object = object, .first_member = members_.size()});
    take();
    skip_spaces();
    if (peek() == (object ? '}' : ']')) {
      close();
      return Step::Ended;
    }
    return object ? scan_key() : Step::Value;
  }

  /// Goes on behind a value: closes what closes there.
  Step end_value() {
    while (!open_.empty()) {
      skip_spaces();
      Open& open = open_.back();
      const char closing = open.object ? '}' : ']';
      if (peek() == ',') {
        take();
        ++open.index;
        return open.object ? scan_key() : Step::Value;
      }
      if (peek() != closing)
        return fault(fmt::format("expected ',' or '{}', found {}", closing, found()));
      close();
    }
    return Step::Ended;
  }

  Step scan_key() {
    skip_spaces();
    if (peek() != '"')
      return fault(fmt::format("expected a key in double quotes, found {}", found()));
    const std::size_t begin = out_.size();
    if (!scan_string()) return Step::Fault;
    members_.push_back({.begin = begin, .key_end = out_.size()});
    skip_spaces();
    if (peek() != ':') return fault(fmt::format("expected ':' after the key, found {}", found()));
    take();
    return Step::Value;
  }

  void close() {
    take();
    if (open_.back().object) drop_repeated(open_.back().first_member);
    members_.resize(open_.back().first_member);
    open_.pop_back();
  }

  /// Marks all but the last of the members with the same key. A member that goes is never the last
  /// one, so the comma behind it goes with it.
  void drop_repeated(std::size_t first) {
    const auto begin = members_.begin() + static_cast<std::ptrdiff_t>(first);
    if (members_.end() - begin < 2) return;
    for (auto member = begin; member + 1 != members_.end(); ++member)
      member->end = (member + 1)->begin;
    std::sort(begin, members_.end(), [this](const Member& a, const Member& b) {
      return std::tuple(key(a), a.begin) < std::tuple(key(b), b.begin);
    });
    for (auto member = begin; member + 1 != members_.end(); ++member) {
      if (key(*member) == key(*(member + 1))) dropped_.emplace_back(member->begin, member->end);
    }
  }

  [[nodiscard]] std::string_view key(const Member& member) const {
    return std::string_view(out_).substr(member.begin + 1, member.key_end - member.begin - 2);
  }

  std::string without_dropped() {
    if (dropped_.empty()) return std::move(out_);
    // One that lies in another one comes behind it, and ends before it.
    std::ranges::sort(dropped_);
    std::string kept;
    kept.reserve(out_.size());
    std::size_t from = 0;
    for (const auto& [begin, end] : dropped_) {
      if (begin > from) kept.append(out_, from, begin - from);
      from = std::max(from, end);
    }
    return kept.append(out_, from);
  }

  /// Strings are written anew, each character in one way only, so that equal keys are equal text.
  bool scan_string() {
    take();
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"') {
        take();
        return true;
      }
      if (byte < 0x20) {
        fault(fmt::format("a control character (0x{:02x}) in a string must be escaped", byte));
        return false;
      }
      if (c == '\\') {
        if (!scan_escape()) return false;
      } else if (byte < 0x80) {
        take();
      } else {
        scan_character();
      }
    }
    fault("the text ends in the middle of a string");
    return false;
  }

  /// A character of several bytes, or a byte that belongs to none.
  void scan_character() {
    const Utf8Character character = utf8_character(text_.substr(at_));
    if (character.valid) {
      out_.append(text_, at_, character.bytes);
    } else {
      replace_text();
    }
    at_ += character.bytes;
  }

  bool scan_escape() {
    const char c = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (c == 'u') return scan_code_unit();
    constexpr std::string_view kEscapes = R"("\/bfnrt)";
    if (c == '\0' || !kEscapes.contains(c)) {
      fault("unknown escape in a string");
      return false;
    }
    if (c != '/') out_ += '\\';
    out_ += c;
    at_ += 2;
    return true;
  }

  /// "\u0041", or two that make one character.
  bool scan_code_unit() {
    std::optional<std::uint32_t> unit = code_unit(at_);
    if (!unit) {
      fault("'\\u' in a string must be followed by four hexadecimal digits");
      return false;
    }
    constexpr std::size_t kEscapeSize = 6;
    const bool high = *unit >= 0xD800 && *unit < 0xDC00;
    const std::optional<std::uint32_t> low = high ? code_unit(at_ + kEscapeSize) : std::nullopt;
    if (low && *low >= 0xDC00 && *low < 0xE000) {
      unit = 0x10000 + ((*unit - 0xD800) << 10U) + (*low - 0xDC00);
      at_ += kEscapeSize;
    }
    if (*unit >= 0xD800 && *unit < 0xE000) {
      replace_text();
    } else {
      append_character(*unit);
    }
    at_ += kEscapeSize;
    return true;
  }

  [[nodiscard]] std::optional<std::uint32_t> code_unit(std::size_t at) const {
    const std::string_view escape = text_.substr(std::min(at, text_.size()), 6);
    if (escape.size() < 6 || !escape.starts_with("\\u")) return std::nullopt;
    std::uint32_t unit = 0;
    const auto [stop, status] = std::from_chars(escape.data() + 2, escape.data() + 6, unit, 16);
    if (status != std::errc{} || stop != escape.data() + 6) return std::nullopt;
    return unit;
  }

  void append_character(std::uint32_t code_point) {
    switch (code_point) {
      case '"':
        out_ += "\\\"";
        return;
      case '\\':
        out_ += "\\\\";
        return;
      case '\b':
        out_ += "\\b";
        return;
      case '\f':
        out_ += "\\f";
        return;
      case '\n':
        out_ += "\\n";
        return;
      case '\r':
        out_ += "\\r";
        return;
      case '\t':
        out_ += "\\t";
        return;
      default:
        break;
    }
    if (code_point < 0x20) {
      out_ += fmt::format("\\u{:04x}", code_point);
    } else {
      append_utf8(out_, code_point);
    }
  }

  Step scan_number() {
    const std::size_t begin = at_;
    if (peek() == '-') ++at_;
    if (text_.substr(at_).starts_with("Infinity")) {
      at_ = begin;
      return scan_word();
    }
    const std::size_t whole = skip_digits();
    if (whole == 0) return fault(fmt::format("expected a digit after '-', found {}", found()));
    if (whole > 1 && text_[at_ - whole] == '0') return fault("a number must not begin with 0");
    if (peek() == '.') {
      ++at_;
      if (skip_digits() == 0)
        return fault(fmt::format("expected a digit after '.', found {}", found()));
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (skip_digits() == 0) return fault(fmt::format("expected an exponent, found {}", found()));
    }
    const std::string_view number = text_.substr(begin, at_ - begin);
    double value = 0;
    const auto status = std::from_chars(number.data(), number.data() + number.size(), value).ec;
    if (status == std::errc::result_out_of_range && too_large(number)) {
      replace_number(number.size() > kShownWordMax ? "a number too large to keep" : number);
    } else {
      out_ += number;
    }
    return Step::Ended;
  }

  std::size_t skip_digits() {
    const std::size_t begin = at_;
    while (is_digit(peek())) ++at_;
    return at_ - begin;
  }

  Step scan_word() {
    std::size_t length = peek() == '-' ? 1 : 0;
    while (at_ + length < text_.size() && is_letter(text_[at_ + length])) ++length;
    const std::string_view word = text_.substr(at_, length);
    if (word == "true" || word == "false" || word == "null") {
      out_ += word;
    } else if (word == "NaN" || word == "Infinity" || word == "-Infinity") {
      replace_number(word);
    } else {
      return fault(fmt::format("expected a JSON value, found {}", found()));
    }
    at_ += length;
    return Step::Ended;
  }

  void replace_number(std::string_view written) {
    out_ += "null";
    if (numbers_replaced_++ < kReplacedNamedMax)
      named_numbers_.push_back(fmt::format("'{}' was {}", path(), written));
  }

  void replace_text() {
    append_utf8(out_, kReplacementCharacter);
    if (texts_replaced_++ == 0) first_text_ = at_;
  }

  /// Where the value that comes next belongs: "val.loss", "history[3]".
  [[nodiscard]] std::string path() const {
    std::string path;
    for (std::size_t depth = 0; depth < open_.size(); ++depth) {
      if (!open_[depth].object) {
        path += fmt::format("[{}]", open_[depth].index);
        continue;
      }
      const bool innermost = depth + 1 == open_.size();
      const std::size_t behind = innermost ? members_.size() : open_[depth + 1].first_member;
      if (!path.empty()) path += '.';
      path += key(members_[behind - 1]);
    }
    if (path.size() <= kPathCharactersMax) return path;
    return std::string(utf8_prefix(path, kPathCharactersMax)) + "...";
  }

  [[nodiscard]] std::string mended() const {
    std::string all;
    if (numbers_replaced_ > 0) all = replaced_text(named_numbers_, numbers_replaced_);
    if (texts_replaced_ > 0) {
      if (!all.empty()) all += "; ";
      all += to_text(place(first_text_, "bad UTF-8 was replaced")) + and_more(texts_replaced_ - 1);
    }
    return all;
  }

  Step fault(std::string what) {
    fault_ = place(at_, std::move(what));
    return Step::Fault;
  }

  [[nodiscard]] JsonFault place(std::size_t at, std::string what) const {
    const std::string_view before = text_.substr(0, at);
    const std::size_t newline = before.rfind('\n');
    const std::string_view line =
        newline == std::string_view::npos ? before : before.substr(newline + 1);
    const auto begins_character = [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    };
    return {.line = 1 + static_cast<int>(std::ranges::count(before, '\n')),
            .column = 1 + static_cast<int>(std::ranges::count_if(line, begins_character)),
            .what = std::move(what)};
  }

  /// The text at this place, for an error.
  [[nodiscard]] std::string found() const {
    if (at_ >= text_.size()) return "the end of the text";
    std::size_t length = 0;
    while (at_ + length < text_.size() && is_letter(text_[at_ + length])) ++length;
    if (length > kShownWordMax) return fmt::format("'{}...'", text_.substr(at_, kShownWordMax));
    if (length > 0) return fmt::format("'{}'", text_.substr(at_, length));
    const auto byte = static_cast<unsigned char>(text_[at_]);
    if (byte < 0x20 || byte >= 0x7F) return fmt::format("the byte 0x{:02x}", byte);
    return fmt::format("'{}'", text_[at_]);
  }

  void skip_spaces() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void take() { out_ += text_[at_++]; }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
  std::vector<Open> open_;
  std::vector<Member> members_;  ///< Members of all open objects, outermost first.
  std::vector<std::pair<std::size_t, std::size_t>> dropped_;  ///< Ranges of out_.
  std::optional<JsonFault> fault_;
  std::vector<std::string> named_numbers_;
  std::size_t numbers_replaced_ = 0;
  std::size_t first_text_ = 0;
  std::size_t texts_replaced_ = 0;
};

}  // namespace

std::string to_text(const JsonFault& fault) {
  return fmt::format("{}:{}: {}", fault.line, fault.column, fault.what);
}

std::expected<CompactJson, JsonFault> compact_json(std::string_view text) {
  return Scanner(text).scan();
}

std::string replaced_text(const std::vector<std::string>& named, std::size_t count) {
  return fmt::format("{}: kept as null{}", fmt::join(named, ", "), and_more(count - named.size()));
}

}  // namespace trainyard::wire
