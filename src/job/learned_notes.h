// The notes for people about the numbers of a job that earlier runs have taught: their values, and
// their source. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "job/learned.h"
#include "job/task_terms.h"
#include "model/terms.h"

namespace trainyard::job {

class LearnedNotes {
 public:
  /// The maximum number of groups with notes.
  static constexpr std::size_t kGroupsMax = 10;

  /// `program`: the word for what tasks run, "command" or "class".
  explicit LearnedNotes(LearnedFor here, std::string_view program = "command")
      : here_(std::move(here)), program_(program) {}

  /// A kind of tasks of a group, with its terms as they are now.
  struct Kind {
    const model::Terms& terms;
    const ExpectedTask& expected;
    LearnedUse use;
  };
  void see(const std::string& group, const Kind& kind);
  /// The duration of a task of the group is known only from another machine.
  void see_elsewhere(const std::string& group, const LearnedFrom& from);

  /// A line or two for each group of which something is learned.
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  /// From the least to the most of a number, and who taught it last.
  template <class Value>
  struct Range {
    Value least{};
    Value most{};
    bool at_least = false;
    bool any = false;
    LearnedFrom from;

    void see(Value value, const Expected<Value>& expected);
    [[nodiscard]] std::string amounts() const;
    /// The amounts, and whether a task may need more.
    [[nodiscard]] std::string text() const;
  };
  struct OfGroup {
    Range<Bytes> memory;
    Range<Bytes> gpu_memory;
    Range<Duration> duration;
    Range<Bytes> too_much;      ///< For the GPUs of this machine.
    Range<Bytes> other_memory;  ///< Measured with another command, and less than `kept`.
    Range<Bytes> kept;
    Range<Bytes> other_gpu_memory;  ///< The same on a GPU; a whole one is reserved.
    std::optional<LearnedFrom> elsewhere;
  };
  void tell(const std::string& group, const OfGroup& learned,
            std::vector<std::string>& notes) const;

  LearnedFor here_;
  std::string_view program_;
  std::map<std::string, OfGroup> groups_;
};

}  // namespace trainyard::job
