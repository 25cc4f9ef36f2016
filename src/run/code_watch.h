// The code that attempts run: has git asked, in a process of its own, while attempts start, and
// reports the result. At most once a second, and less often if git takes long, so that it never
// takes more than a twentieth of a core.
//
//   an attempt starts ──▶ it gets the last result there ──▶ a moment later git is asked, for all
//   that have started since ──▶ where the result differs, CodeFound reports it
//
// The code of an attempt without such an answer is unknown. Bounded: beyond a maximum of attempts
// or places at once nothing is known.
//
// Belongs to the thread of its loop.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/code.h"
#include "model/event.h"
#include "model/ids.h"
#include "process/code_asker.h"
#include "sys/event_loop.h"

namespace trainyard::run {

class CodeWatch {
 public:
  static constexpr std::size_t kAttemptsMax = 20'000;
  static constexpr std::size_t kPlacesMax = 256;
  /// Number of codes that a journal has room for.
  static constexpr std::size_t kCodesMax = 1'000;

  struct Pace {
    Duration between{1'000};       ///< Minimum time between two questions.
    Duration between_max{60'000};  ///< Maximum, however long git takes.
    Duration patience{30'000};     ///< After that the answer counts as unknown.
  };

  /// `loop` must outlive it. `without_secrets` returns the part of a diff that may be kept.
  CodeWatch(sys::EventLoop& loop, process::CodeAsker asker,
            std::move_only_function<std::string(std::string)> without_secrets)
      : CodeWatch(loop, std::move(asker), std::move(without_secrets), Pace{}) {}
  CodeWatch(sys::EventLoop& loop, process::CodeAsker asker,
            std::move_only_function<std::string(std::string)> without_secrets, Pace pace);
  CodeWatch(CodeWatch&&) = delete;
  CodeWatch& operator=(CodeWatch&&) = delete;
  ~CodeWatch();

  /// Receives the results, from callbacks of the loop.
  using Listener = std::move_only_function<void(model::CodeFound)>;
  void listen(Listener listener) { listener_ = std::move(listener); }

  /// Code that is known before anything starts, for its whole work tree.
  void know(const model::Code& code) {
    by_root_[code.root] = code;
    said_.insert(code);
  }

  /// An attempt starts in that directory. Returns the last result there.
  std::optional<model::Code> started(model::AttemptKey key, const std::string& directory);

 private:
  struct Started {
    model::AttemptKey key;
    std::optional<model::Code> last;
  };
  using Starts = std::map<std::string, std::vector<Started>>;  ///< By their directories.

  [[nodiscard]] std::optional<model::Code> last_of(const std::string& directory) const;
  void ask_soon();
  void ask();
  void hear();
  void give_up();
  void conclude(const std::string& directory, const std::optional<process::FoundCode>& found);

  sys::EventLoop& loop_;
  process::CodeAsker asker_;
  std::move_only_function<std::string(std::string)> without_secrets_;
  Pace pace_;
  Listener listener_;
  /// By directory: its work tree, as git reported; nothing: in none that git knows.
  std::map<std::string, std::optional<std::string>> roots_;
  std::map<std::string, model::Code> by_root_;  ///< The last result in each.
  std::set<model::Code> said_;                  ///< The codes that the listener has received.
  Starts waiting_;
  std::size_t attempts_ = 0;  ///< Number of waiting attempts.
  Starts asked_;              ///< Of the question without an answer.
  std::vector<std::string> question_;
  bool busy_ = false;
  bool gone_ = false;  ///< The process that answers is gone.
  std::optional<sys::EventLoop::TimerId> next_question_;
  std::optional<sys::EventLoop::TimerId> patience_;
  Duration asked_at_{0};
  Duration not_before_{0};
};

}  // namespace trainyard::run
