// The `keep` of a group: the tasks of which the disk keeps more than logs and results.
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/score.h"
#include "text/key_reader.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

struct Keep {
  /// The maximum number of tasks to keep. More than there are tasks changes nothing.
  static constexpr int kBestMost = 1'000'000;

  int best = 1;
  std::string key;  ///< The key of the results by which tasks are compared.
  Better better = Better::More;

  friend bool operator==(const Keep&, const Keep&) = default;
};

/// Reads the value of `keep`: {best: 3, by: acc}. Mistakes are added. Nothing where there are any.
std::optional<Keep> read_keep(const text::Complainer& to, const text::YamlNode& node);

/// "the best 3 by acc (the largest)"
std::string to_text(const Keep& keep);

/// The facts about a group of a run, apart from its plan, that decide which tasks may go.
struct KeptGroup {
  /// The name in the file: groups of one name in several rounds of a repeat are ranked together.
  std::string name;
  std::optional<Keep> keep;
  std::optional<std::uint32_t> round;  ///< The number in a repeat; nothing: it is in none.
  /// The group is before a repeat, and each of its rounds may read its results.
  bool is_for_rounds = false;

  friend bool operator==(const KeptGroup&, const KeptGroup&) = default;
};

}  // namespace trainyard::job
