#include "run/neighbours.h"

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

#include "run/run_numbers.h"
#include "sys/clock.h"

namespace trainyard::run {

Result<std::optional<process::PromiseBoard>> open_promises() {
  const std::vector<std::string> directories = process::PromiseBoard::usual_directories();
  if (directories.empty()) return std::nullopt;
  Result<process::PromiseBoard> board = process::PromiseBoard::open(directories);
  if (board) return std::optional(*std::move(board));
  return std::unexpected(
      std::move(board.error())
          .in("this run and other runs here do not see each other's reservations"));
}

std::vector<model::Neighbour> named(std::vector<process::PromiseBoard::Other> others,
                                    std::string_view numbering) {
  const std::int64_t midnight = sys::last_midnight_unix_s();
  std::vector<model::Neighbour> neighbours;
  neighbours.reserve(others.size());
  for (process::PromiseBoard::Other& other : others) {
    if (numbering.empty() || other.promises.numbering != numbering) other.promises.run = 0;
    neighbours.push_back({.user = other.user,
                          .is_ours = other.is_ours,
                          .user_name = other.is_ours ? "" : std::move(other.user_name),
                          .midnight_unix_s = midnight,
                          .its = std::move(other.promises)});
  }
  return neighbours;
}

std::vector<model::Neighbour> yards_here() {
  const Result<RunNumbers> numbers = RunNumbers::of_this_user();
  return named(process::PromiseBoard::look_at(process::PromiseBoard::usual_directories()),
               numbers ? numbers->identity() : std::string());
}

}  // namespace trainyard::run
