// The yard's end of its guard: sends words to it, receives words from it, and knows its state.
//
// Belongs to one thread. Waits for the guard in wait_until_ended() alone, and in make() for its
// first word.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/time.h"
#include "process/guard.h"
#include "process/guard_words.h"
#include "sys/descriptor.h"

namespace trainyard::process {

class GuardLine {
 public:
  /// Forks the guard and with it the first keeper, which is what its first word is about.
  struct Made;
  static Result<Made> make(const GuardOptions& options, const KeeperBody& keeper);

  GuardLine(GuardLine&&) noexcept = default;
  GuardLine& operator=(GuardLine&&) noexcept = default;
  ~GuardLine() = default;

  [[nodiscard]] pid_t pid() const { return guard_; }
  /// Readable when there is something to hear.
  [[nodiscard]] const sys::Descriptor& words() const { return words_; }
  /// The next word; nothing while there is none.
  std::optional<FromGuard> hear();
  /// No word comes any more.
  [[nodiscard]] bool is_closed() const { return closed_; }

  void tell(ToGuard::Kind kind) { send_word(words_, ToGuard{.kind = kind, .path = {}}); }
  void remove_at_end(const std::string& path);
  /// Makes the directory of the run its working directory.
  void enter(const std::string& directory);
  /// The keeper is to end, and no other to take its place.
  void let_go() {
    tell(ToGuard::Kind::NoMore);
    words_.close();
  }

  /// The signal that killed it, or 0 when it ended by itself; nothing when it has not within
  /// `most`.
  std::optional<int> wait_until_ended(Duration most);
  /// Does nothing once that has returned something.
  void send_signal(int signal) const;
  /// The exits that the guard and its last keeper have left on their board, as
  /// ExitBoard::find_ended() has them. The keeper must have ended. Empty before
  /// wait_until_ended() has returned something, and without GuardOptions::adopts.
  [[nodiscard]] std::vector<FoundExit> exits_left(std::span<const pid_t> unreaped) const;

 private:
  explicit GuardLine(Guarded guarded);

  pid_t guard_;
  sys::Descriptor words_;
  sys::Descriptor ended_;
  std::unique_ptr<ExitBoard> board_;  ///< Null: this process does not adopt.
  bool closed_ = false;
  std::optional<int> signal_;  ///< Once it has been reaped.
};

struct GuardLine::Made {
  GuardLine line;
  FromGuard first;
};

}  // namespace trainyard::process
