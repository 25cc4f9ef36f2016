// Small numbers for runs that users type, counted per user and host: `trainyard logs 46`.
//
// Each is a symbolic link, $XDG_STATE_HOME/trainyard/<host>/runs/46 (without that variable
// ~/.local/state), to the run's directory. Making a link is atomic, on a network disk too, so
// nobody locks anything, and there is nothing to read that could be damaged. A number stays that of
// its run when it is resumed, and no other run gets it as long as its link exists. A second link,
// 46.from, leads to the directory in which the command was typed that began the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace trainyard::run {

/// The directory for this user's state on this host: $XDG_STATE_HOME/trainyard/<host>. Creates
/// nothing. An error if the user has no home directory.
Result<std::string> state_of_this_user();

class RunNumbers {
 public:
  /// Number of runs whose numbers are kept; the oldest are forgotten first.
  static constexpr std::size_t kKeptMax = 4096;

  /// The run numbers of this user on this host. An error if the user has no home directory. Creates
  /// no files.
  static Result<RunNumbers> of_this_user();
  /// In a directory, which need not be there.
  explicit RunNumbers(std::string directory) : directory_(std::move(directory)) {}

  /// A word that is the same for all who share these numbers, and for no one else on this host.
  /// Empty while there are none.
  [[nodiscard]] std::string identity() const;

  /// The next number, for a run that begins in this directory: one that was there before has none
  /// any more. `started_from` is the directory from which it was started. Costs O(kKeptMax).
  [[nodiscard]] Result<std::uint32_t> give(const std::string& run_directory,
                                           const std::string& started_from) const;
  /// The number of a run that is resumed, or the next number if it has none on this host.
  [[nodiscard]] Result<std::uint32_t> keep(const std::string& run_directory,
                                           const std::string& started_from) const;

  /// Takes the number of a run back that does not begin: the next run may get it.
  void forget(std::uint32_t number) const;

  /// The present or former directory of the run of this number; nothing if it was never given, or
  /// is forgotten.
  [[nodiscard]] std::optional<std::string> directory_of(std::uint32_t number) const;
  /// The directory from which the run of this number was started; nothing if it is not known.
  [[nodiscard]] std::optional<std::string> start_of(std::uint32_t number) const;
  /// Costs a read of the link of each later run.
  [[nodiscard]] std::optional<std::uint32_t> number_of(const std::string& run_directory) const;

  struct Numbered {
    std::uint32_t number = 0;
    std::string directory;
  };
  /// The last one first.
  [[nodiscard]] std::vector<Numbered> all() const;
  /// The directories of the runs that were started from this directory, the last one first.
  [[nodiscard]] std::vector<std::string> started_from(const std::string& directory) const;

 private:
  /// The kept numbers, the last one first.
  [[nodiscard]] std::vector<std::uint32_t> numbers() const;
  [[nodiscard]] std::string link_of(std::uint32_t number) const;
  [[nodiscard]] std::string start_link_of(std::uint32_t number) const;

  std::string directory_;
};

/// "46": a number without anything around it, and not 0.
std::optional<std::uint32_t> read_run_number(std::string_view text);

}  // namespace trainyard::run
