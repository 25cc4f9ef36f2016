// Where a task may run, as somebody wrote it: patterns for the names of machines and of GPUs. Plain
// values and words; any thread.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "base/result.h"

namespace trainyard::model {

/// In a pattern '*' is any text and '?' any sign; case does not matter. What has no name is not
/// known yet, or made up: it will do.
struct SiteWish {
  std::string machine;  ///< The whole name of the machine; empty: any.
  std::string gpu;      ///< Somewhere in the name of each of its GPUs; empty: any.

  [[nodiscard]] bool says_nothing() const { return machine.empty() && gpu.empty(); }
  [[nodiscard]] bool takes_machine(std::string_view name) const;
  [[nodiscard]] bool takes_gpu(std::string_view name) const;

  friend auto operator<=>(const SiteWish&, const SiteWish&) = default;
};

/// Reads "machine=lab*,gpu=H100": one of the two, or both in any order. The error says what would
/// be right.
Result<SiteWish> parse_site_wish(std::string_view text);

/// As parse_site_wish() reads it; empty where it says nothing.
std::string to_text(const SiteWish& wish);

/// The text about a suitable machine: "is called 'lab*' and has a GPU called 'H100'".
std::string predicate_text(const SiteWish& wish);

}  // namespace trainyard::model
