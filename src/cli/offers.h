// What may stand at the cursor of a command line that is being typed, as far as it is a value: runs
// and their tasks, states, job files, settings, columns.
//
// What cannot be found out is not offered, and nobody is told why: that would be written into
// somebody's command line. Looks at the machine, waits for no run.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::cli {

struct Offer {
  std::string text;   ///< The whole word.
  std::string about;  ///< For people, where the shell shows it; may be empty.
};

struct Offers {
  /// So many are shown. Of more of them their beginnings are.
  static constexpr std::size_t kMax = 100;

  std::vector<Offer> list;
  bool files = false;  ///< And the names of any files, by which the shell goes on itself.
};

/// The word at the cursor, and what is typed before it.
struct Typed {
  std::string word;
  std::vector<std::string> before;  ///< Words that are neither options nor values of these.
  std::string run_directory;        ///< --run-dir, or empty.
};

/// The values of this kind (cli/value_kinds.h) that begin with the word, and maybe others.
Offers offers_of(std::string_view kind, const Typed& typed);

/// Those that begin with the word, each once, at most Offers::kMax: where there are more of them,
/// how they go on until the next comma or slash, or as far as it takes to tell so many apart.
std::vector<Offer> shown_offers(std::vector<Offer> offers, std::string_view word);

}  // namespace trainyard::cli
