// What `keep` of a group says: of which tasks the disk keeps more than logs and results.
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
  /// How many may be kept. More than there are tasks changes nothing.
  static constexpr int kBestMost = 1'000'000;

  int best = 1;
  std::string key;  ///< Of the results, by which they are compared.
  Better better = Better::More;

  friend bool operator==(const Keep&, const Keep&) = default;
};

/// Reads the value of `keep`: {best: 3, by: acc}. Mistakes are added. Nothing where there are any.
std::optional<Keep> read_keep(const text::Complainer& to, const text::YamlNode& node);

/// "the best 3 by acc (the largest)"
std::string to_text(const Keep& keep);

/// What is known of a group of a run beside its plan, to decide who may go.
struct KeptGroup {
  /// In the file: those of one name in several rounds of a repeat are ranked together.
  std::string name;
  std::optional<Keep> keep;
  std::optional<std::uint32_t> round;  ///< Of a repeat; nothing: it is in none.
  /// It stands before a repeat, and each of its rounds may read what its tasks left.
  bool is_for_rounds = false;

  friend bool operator==(const KeptGroup&, const KeptGroup&) = default;
};

}  // namespace trainyard::job
