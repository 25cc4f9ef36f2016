#include "process/exit_board.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include <sys/mman.h>
#include <sys/wait.h>

namespace trainyard::process {

std::optional<bool> has_exited_with_0(pid_t child) {
  siginfo_t how{};
  if (::waitid(P_PID, static_cast<id_t>(child), &how, WEXITED | WNOHANG | WNOWAIT) != 0) {
    return false;  // It was reaped elsewhere.
  }
  if (how.si_pid == 0) return std::nullopt;
  return how.si_code == CLD_EXITED && how.si_status == EXIT_SUCCESS;
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
  place.exited_with_0 = false;
  place.process = process;  // Last: it makes the rest valid.
}

void ExitBoard::mark_finished(model::AttemptKey key) {
  const auto taken = taken_.find(key);
  if (taken != taken_.end()) places_[taken->second].exited_with_0 = true;
}

void ExitBoard::leave(model::AttemptKey key) {
  const auto taken = taken_.find(key);
  if (taken == taken_.end()) return;
  places_[taken->second].process = 0;
  left_.push_back(taken->second);
  taken_.erase(taken);
}

std::vector<model::AttemptKey> ExitBoard::take_finished(std::span<const pid_t> unreaped) {
  std::vector<model::AttemptKey> finished;
  for (Place& place : places_) {
    const pid_t process = place.process.exchange(0);
    if (process == 0) continue;
    const bool is_unreaped = std::ranges::find(unreaped, process) != unreaped.end();
    if (place.exited_with_0 || is_unreaped) finished.push_back(place.key);
  }
  return finished;
}

}  // namespace trainyard::process
