#include "process/exit_board.h"

#include <algorithm>
#include <csignal>

#include <sys/mman.h>
#include <sys/wait.h>

namespace trainyard::process {

std::optional<ChildEnd> end_of_child(pid_t child) {
  siginfo_t how{};
  if (::waitid(P_PID, static_cast<id_t>(child), &how, WEXITED | WNOHANG | WNOWAIT) != 0) {
    return ChildEnd{};
  }
  if (how.si_pid == 0) return std::nullopt;
  if (how.si_code == CLD_EXITED) return ChildEnd{.exit = model::ExitedWith{how.si_status}};
  return ChildEnd{.exit = model::KilledBy{.signal = how.si_status}};
}

ExitBoard::ExitBoard() {
  // The memory is zero: all places are free.
  void* const memory = ::mmap(nullptr, kPlaces * sizeof(Place), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) places_ = {static_cast<Place*>(memory), kPlaces};
}

ExitBoard::~ExitBoard() {
  if (!places_.empty()) ::munmap(places_.data(), places_.size_bytes());
}

void ExitBoard::keep_from_children() const {
  if (!places_.empty()) ::madvise(places_.data(), places_.size_bytes(), MADV_DONTFORK);
}

void ExitBoard::enter(model::AttemptKey key, pid_t process) {
  leave(key);
  if (left_.empty() && next_ == places_.size()) return;
  if (left_.empty()) left_.push_back(next_++);
  const std::size_t number = left_.back();
  left_.pop_back();
  taken_.emplace(key, number);
  Place& place = places_[number];
  place.key = key;
  place.has_ended = false;
  place.process = process;  // Last: it makes the rest valid.
}

void ExitBoard::mark_ended(model::AttemptKey key, const model::End& end) {
  const auto taken = taken_.find(key);
  if (taken == taken_.end()) return;
  Place& place = places_[taken->second];
  if (const auto* const exited = std::get_if<model::ExitedWith>(&end)) {
    place.exit = *exited;
  } else if (const auto* const killed = std::get_if<model::KilledBy>(&end)) {
    place.exit = *killed;
  } else {
    return leave(key);
  }
  place.has_ended = true;  // Last: it makes the exit valid.
}

void ExitBoard::leave(model::AttemptKey key) {
  const auto taken = taken_.find(key);
  if (taken == taken_.end()) return;
  places_[taken->second].process = 0;
  left_.push_back(taken->second);
  taken_.erase(taken);
}

std::vector<UnreportedExit> ExitBoard::take_ended(std::span<const pid_t> unreaped) {
  std::vector<UnreportedExit> ended;
  for (Place& place : places_) {
    const pid_t process = place.process.exchange(0);
    if (process == 0) continue;
    if (place.has_ended) {
      ended.push_back({.key = place.key, .exit = place.exit});
    } else if (std::ranges::find(unreaped, process) != unreaped.end()) {
      ended.push_back({.key = place.key, .exit = model::ExitedWith{0}});
    }
  }
  return ended;
}

}  // namespace trainyard::process
