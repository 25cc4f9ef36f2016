// Offers for the cursor of a command line that is being typed, where a value is due: runs and their
// tasks, states, job files, settings, columns.
//
// Skips values that cannot be found, without a message, which the shell would write into the user's
// command line. Reads the machine's state, and waits for no run.
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
  /// The maximum number of offers to show. If there are more, their beginnings are shown.
  static constexpr std::size_t kMax = 100;

  std::vector<Offer> list;
  bool files = false;  ///< And the names of any files, which the shell itself completes.
};

/// The word at the cursor, and the words before it.
struct Typed {
  std::string word;
  std::vector<std::string> before;  ///< Words that are neither options nor values of these.
  std::string run_directory;        ///< --run-dir, or empty.
};

/// The values of this kind (cli/value_kinds.h) that begin with the word, and maybe others.
Offers offers_of(std::string_view kind, const Typed& typed);

/// The offers that begin with the word, each once, at most Offers::kMax. If there are more, they
/// are cut at the next comma or slash, or to the longest beginnings that stay within the limit.
std::vector<Offer> shown_offers(std::vector<Offer> offers, std::string_view word);

}  // namespace trainyard::cli
