// Text with placeholders: `train.py --lr {lr} --out {task_dir}`, read once and filled in for each
// task.
//
// Placeholders are only `{identifier}`, `{needs.<group>...}` and `{prev.<group>...}`. `${` is left
// alone, with the text after it. `{{` stands for one `{`, and `{{identifier}}` for `{identifier}`;
// a `}` anywhere else stands for itself. So JSON, `awk '{print $1}'`, `${HOME}` and `find -exec ls
// {} +` can be written as they are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/shell_quote.h"
#include "text/shell_reader.h"

namespace trainyard::text {

/// The placeholders that every task has. Their slots come first, then those of its matrix.
constexpr std::array<std::string_view, 4> kOwnPlaceholders{"task_dir", "run_dir", "task_id",
                                                           "group"};

/// A letter or `_`, then letters, digits, `_` and `-`. A key of a matrix must be an identifier.
bool is_identifier(std::string_view text);

/// The values of placeholders, by slot. A slot has no value if this combination of a matrix does
/// not have one.
using Bindings = std::vector<std::optional<std::string>>;

/// Small: text without a placeholder costs no more than its string.
class Template {
 public:
  Template() = default;

  /// The result of read(). A placeholder that is a problem is left as text.
  struct Read;

  /// `names` are the names that placeholders may use; the slot of each is its index. With
  /// `in_shell` the text is a command for bash -c.
  struct Names {
    std::span<const std::string_view> names;
    bool in_shell = false;
    /// The keys of the matrix, where an unknown name may be one to add to it.
    std::optional<std::span<const std::string_view>> matrix = {};
  };
  static Read read(std::string_view text, const Names& names);
  /// A text without placeholders, braces and all.
  static Template plain(std::string text);

  /// The text with all values in their places; a slot without a value is left empty (missing() has
  /// been called before). In a command for the shell they are quoted for their place: this form is
  /// shown to people and used for fingerprints, but never run.
  [[nodiscard]] std::string fill(const Bindings& bindings) const;

  /// The number of bytes of fill(), where the text is no command for the shell.
  [[nodiscard]] std::size_t filled_size(const Bindings& bindings) const;

  /// The form of a command for the shell that is run. A slot of `lists` has several values: as a
  /// separate word, it becomes the command's positional parameters, "$@".
  struct Command;
  using Lists = std::map<std::size_t, std::vector<std::string>>;
  [[nodiscard]] Command command(const Bindings& bindings, const Lists& lists = {}) const;

  /// The slot, where the text is one placeholder and nothing else.
  [[nodiscard]] std::optional<std::size_t> only_slot() const;
  /// The slots of `lists` that are separate words in a command for the shell, each once.
  [[nodiscard]] std::vector<std::size_t> slots_as_words() const;

  /// Features of a command for the shell that do not depend on its values.
  [[nodiscard]] const ShellTraits& traits() const { return traits_; }

  /// The slot of the first value in a here-document, where a line of it that is the document's end
  /// cannot be quoted: only command() is right for any value.
  [[nodiscard]] std::optional<std::size_t> first_in_document() const;

  /// The first slot it needs and the bindings do not have.
  [[nodiscard]] std::optional<std::size_t> missing(const Bindings& bindings) const;

  [[nodiscard]] bool uses_any() const { return !parts_.empty(); }
  [[nodiscard]] bool uses(std::size_t slot) const;

  /// The text without its placeholders: all of it, where there are none.
  [[nodiscard]] const std::string& text() const { return literal_; }

 private:
  struct Part {
    std::uint32_t text_before = 0;  ///< The length of the part of literal_ between the last part
                                    ///< and this one.
    std::uint16_t slot = 0;
    bool in_shell = false;
    bool own_word = false;  ///< In a command for the shell: with nothing next to it, and no quotes.
    ShellContext context;
  };

  std::string literal_;  ///< All the text between the placeholders, in one piece.
  std::vector<Part> parts_;
  ShellTraits traits_;
};

struct Template::Command {
  std::string text;  ///< The same for all values: they are in the variables.
  /// TRAINYARD_V1, TRAINYARD_V2, ... with their values, one for each placeholder.
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<std::string> parameters;  ///< "$@"
};

struct Template::Read {
  Template text;
  std::vector<std::string> problems;  ///< "unknown placeholder '{le}' (did you mean '{lr}'?)"
};

}  // namespace trainyard::text
