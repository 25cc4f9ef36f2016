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

std::vector<pid_t> exited_well(std::span<const pid_t> children) {
  const ProcessExit well = model::ExitedWith{0};
  std::vector<pid_t> found;
  for (const pid_t child : children) {
    if (end_of_child(child).value_or(ChildEnd{}).exit == well) found.push_back(child);
  }
  return found;
}

ExitBoard::ExitBoard() {
  // The memory is zero: all places are free.
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) shared_ = static_cast<Shared*>(memory);
}

ExitBoard::~ExitBoard() {
  if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
}

void ExitBoard::keep_from_children() const {
  if (shared_ != nullptr) ::madvise(shared_, sizeof(Shared), MADV_DONTFORK);
}

ExitBoard::Place* ExitBoard::place_of(model::AttemptKey key) {
  const auto taken = taken_.find(key);
  return taken == taken_.end() ? nullptr : &shared_->places[taken->second];
}

void ExitBoard::enter(model::AttemptKey key, pid_t process, std::string_view note_order) {
  leave(key);
  if (shared_ == nullptr || (left_.empty() && shared_->used == kPlaces)) return;
  if (left_.empty()) left_.push_back(shared_->used++);
  const std::size_t number = left_.back();
  left_.pop_back();
  taken_.emplace(key, number);
  Place& place = shared_->places[number];
  place.key = key;
  place.has_ended = false;
  place.was_signalled = false;
  if (note_order.size() > kNoteOrderMax) note_order = {};
  place.note_order_size = note_order.copy(place.note_order.data(), note_order.size());
  place.process = process;  // Last: it makes the rest valid.
}

void ExitBoard::mark_signalled(model::AttemptKey key) {
  if (Place* const place = place_of(key)) place->was_signalled = true;
}

void ExitBoard::mark_ended(model::AttemptKey key, const model::End& end) {
  Place* const place = place_of(key);
  if (place == nullptr) return;
  if (const auto* const exited = std::get_if<model::ExitedWith>(&end)) {
    place->exit = *exited;
  } else if (const auto* const killed = std::get_if<model::KilledBy>(&end)) {
    place->exit = *killed;
  } else {
    return leave(key);
  }
  place->has_ended = true;  // Last: it makes the exit valid.
}

void ExitBoard::leave(model::AttemptKey key) {
  const auto taken = taken_.find(key);
  if (taken == taken_.end()) return;
  shared_->places[taken->second].process = 0;
  left_.push_back(taken->second);
  taken_.erase(taken);
}

std::vector<FoundExit> ExitBoard::find_ended(std::span<const pid_t> unreaped) {
  std::vector<FoundExit> ended;
  if (shared_ == nullptr) return ended;
  for (Place& place : std::span(shared_->places).first(shared_->used)) {
    const pid_t process = place.process;
    if (process == 0) continue;
    if (!place.has_ended) {
      if (std::ranges::find(unreaped, process) == unreaped.end()) {
        place.process = 0;
        continue;
      }
      // This process may be killed as well, after it has reaped that one.
      place.exit = model::ExitedWith{0};
      place.has_ended = true;  // Last: it makes the exit valid.
    }
    ended.push_back(
        {.exit = {.key = place.key, .exit = place.exit, .was_signalled = place.was_signalled},
         .note_order = std::string(place.note_order.data(), place.note_order_size)});
  }
  return ended;
}

void ExitBoard::clear() {
  if (shared_ == nullptr) return;
  for (Place& place : std::span(shared_->places).first(shared_->used)) place.process = 0;
  shared_->used = 0;
}

}  // namespace trainyard::process
