// The results of tasks as columns: the fields, the form of each, and the score among them. Pure:
// JSON text in, text out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/score.h"

namespace trainyard::report {

enum class FieldKind : std::uint8_t { Null, Truth, Integer, Decimal, Text, Nested };

struct Field {
  std::string key;
  FieldKind kind = FieldKind::Null;
  double number = 0;  ///< The value of an Integer or a Decimal; rounded if no double is that
                      ///< number.
  std::string text;   ///< A Text unchanged, anything else as the JSON that the task wrote.

  [[nodiscard]] bool is_number() const {
    return kind == FieldKind::Integer || kind == FieldKind::Decimal;
  }
};

using Fields = std::vector<Field>;

/// The fields of a JSON object in their order; none when it is no object. Reads a result that the
/// journal keeps, so within the limits of wire/result_text.h.
Fields read_fields(std::string_view object);

const Field* find_field(const Fields& fields, std::string_view key);

/// One scalar field over all tasks of a group.
struct FieldColumn {
  std::string key;
  bool numeric = false;  ///< Every value is a number, so it is aligned to the right.
  bool percent = false;  ///< Its numbers are accuracies from 0 to 1, shown as "96.4 %".
  int decimals = -1;     ///< Number of decimals; -1: as many as a number needs.

  friend bool operator==(const FieldColumn&, const FieldColumn&) = default;
};

/// A field that is text in some results although others have a number, or although its name is that
/// of a score.
struct TextField {
  std::string key;
  std::string text;  ///< "acc is text in 2 results, such as 'n/a'"

  friend bool operator==(const TextField&, const TextField&) = default;
};

/// A line for people about such a field, without its end.
std::string text_field_note(const TextField& field);

/// "-" for nothing and for null.
std::string show_field(const FieldColumn& column, const Field* field);

/// A JSON object of the fields that none of `columns` shows; empty when none is left.
std::string rest_as_json(const Fields& fields, const std::vector<FieldColumn>& columns);

/// Gathers the scalar fields of many results, at most kKeysMax of them.
class FieldColumns {
 public:
  static constexpr std::size_t kKeysMax = 64;

  void look_at(const Fields& fields);

  /// The first fields that came up; of too many, those that look like scores before the others.
  [[nodiscard]] std::vector<FieldColumn> first(std::size_t at_most) const;

  /// The names of the scalar fields that `first(at_most)` does not contain.
  [[nodiscard]] std::vector<std::string> beyond(std::size_t at_most) const;
  /// The first kKeysMax fields that were a list or an object in some result.
  [[nodiscard]] const std::vector<std::string>& nested() const { return nested_; }

  /// The first few fields that are text where a number was to be expected.
  [[nodiscard]] std::vector<TextField> texts() const;

  /// Whether results contain more than `first(at_most)` shows.
  [[nodiscard]] bool more_than(std::size_t at_most) const {
    return !nested_.empty() || seen_.size() > at_most;
  }

 private:
  struct Seen {
    std::string key;
    bool numbers_only = true;
    bool integers_only = true;
    double smallest = 0;  ///< The smallest number other than 0, without sign; 0 before the first.
    double largest = 0;
    bool within_one = true;  ///< From 0 to 1.
    bool any = false;        ///< Other than null.
    bool any_number = false;
    int texts = 0;           ///< The number of results that have it as text.
    std::string first_text;  ///< The first of them, for people.
  };
  static FieldColumn column_of(const Seen& seen);
  std::vector<Seen> seen_;
  std::vector<std::string> nested_;
};

/// "lists and objects left out: val, curve" for nested fields; empty for none.
std::string nested_text(const std::vector<std::string>& fields);

/// "acc", "val_acc", "test-accuracy", ...
bool is_accuracy(std::string_view key);

/// The task that did best by the one obvious score of its group.
struct Best {
  std::string id;
  std::string key;
  double value = 0;
  std::string text;  ///< The value as its column shows it: "96.4 %".
};

/// Finds the best task. There is one obvious score when exactly one field like an accuracy came
/// up, or none and exactly one like a loss; with more than one it does not guess.
class BestSoFar {
 public:
  void look_at(const std::string& id, const Fields& fields);
  /// The columns show the value; without the column of the score it is shown verbatim.
  [[nodiscard]] std::optional<Best> best(const std::vector<FieldColumn>& columns) const;
  /// The scores of one kind that keep best() from choosing; empty where it chooses or has none.
  [[nodiscard]] std::vector<std::string> rivals() const;

 private:
  struct Candidate {
    Better better;
    std::string id;
    Field field;
  };
  std::vector<Candidate> candidates_;
};

}  // namespace trainyard::report
