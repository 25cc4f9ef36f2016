// The files of a user's queue on a host: one for each submission, in the directory of its state.
//
//   $XDG_STATE_HOME/trainyard/<host>/queue/
//     waiting/46   begun/45   ended/44
//
// The directory of the file is the state of a submission. One rename changes it, so no process sees
// a submission in two states, and no lock is needed. A file contains the environment of the shell
// that submitted it, so only its user may read it. The file of an ended submission has no
// environment; the rest is kept, so that the submission can be put back. Results are in the
// directory of each run.
//
// The process that serves the queue (queue/queue_server.h) holds the lock of the directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "queue/rules/submission.h"

namespace trainyard::queue {

/// Empty fields where a run directory has no mark, or a damaged one.
SubmissionMark read_mark(const std::string& run_directory);

/// Why the run directory of a submission is not, or not certainly, its own any more, for people:
/// "its directory was deleted or moved". Empty: it is.
std::string why_directory_lost(const Submission& submission);

class QueueFiles {
 public:
  /// Number of submissions that may wait.
  static constexpr std::size_t kWaitingMax = 2000;
  /// Number of ended submissions that are kept; the oldest are forgotten first.
  static constexpr std::size_t kEndedMax = 1000;

  enum class Place : std::uint8_t { Waiting, Begun, Ended };

  /// The queue of this user on this host. Creates no files.
  static Result<QueueFiles> of_this_user();
  explicit QueueFiles(std::string directory) : directory_(std::move(directory)) {}

  /// Makes the directories. `elsewhere` is the directory for the queue (yard.state). If it is
  /// empty, the queue is next to the other state of the user, and a disk that machines share is an
  /// error.
  [[nodiscard]] Result<void> make(const std::string& elsewhere) const;

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] std::string words_path() const { return directory_ + "/words"; }
  [[nodiscard]] std::string log_path() const { return directory_ + "/queue.log"; }
  /// The process that serves the queue; see RunLock::holder().
  [[nodiscard]] std::optional<std::int64_t> server() const;

  /// Whether its server begins no more submissions and exits when its active runs have ended.
  [[nodiscard]] bool is_draining() const;
  [[nodiscard]] Result<void> set_draining(bool draining) const;

  /// The numbers of the submissions in this state, ascending.
  [[nodiscard]] std::vector<std::uint32_t> numbers(Place place) const;
  [[nodiscard]] std::optional<Place> place_of(std::uint32_t number) const;
  /// A submission that has ended comes without the values from its shell: environment, umask and
  /// limits.
  [[nodiscard]] Result<Submission> read(Place place, std::uint32_t number) const;
  [[nodiscard]] std::optional<EndedSubmission> ended(std::uint32_t number) const;

  /// Adds a waiting submission. An error if too many wait.
  [[nodiscard]] Result<void> add(const Submission& submission) const;
  /// Takes a waiting submission to be begun. False if it does not wait any more.
  [[nodiscard]] bool begin(std::uint32_t number) const;
  /// Writes Submission::incomplete of one that has begun. Without effect on any other.
  [[nodiscard]] Result<void> note_incomplete(const Submission& submission) const;
  /// Writes the end of a submission in any state.
  [[nodiscard]] Result<void> end(const EndedSubmission& ended) const;
  /// Ends a waiting submission, which never begins. Of one that was to run again, the run keeps its
  /// outcome. False if none waits by that number.
  [[nodiscard]] bool cancel(std::uint32_t number) const;

  /// Lets a submission that has ended wait again. False if it has not ended, or another process
  /// puts it back. An error as of add(); it stays ended then.
  [[nodiscard]] Result<bool> put_back(const Submission& submission) const;
  /// Marks the end of a run as outdated, as the run was resumed outside the queue. Keeps what was
  /// submitted.
  void forget_end(std::uint32_t number) const;

 private:
  std::string directory_;
};

/// Whether the queue was made in this directory (yard.state). A queue stays where it was made.
bool is_in(const QueueFiles& files, const std::string& elsewhere);

/// The submissions that ended before they began because run `number` did not succeed, or because
/// one of these did not, as read() has them; ascending. Costs O(all that have ended).
std::vector<Submission> skipped_because_of(const QueueFiles& files, std::uint32_t number);
/// The submissions of skipped_because_of(), and the submissions that need run `number` or one of
/// these and that ended after they had begun; without those that start only after a failure.
std::vector<Submission> ended_behind(const QueueFiles& files, std::uint32_t number);
/// The submissions that need run `number` and have begun, whether or not they have ended, as read()
/// has them; ascending. Costs O(all that have begun or ended).
std::vector<Submission> begun_behind(const QueueFiles& files, std::uint32_t number);

}  // namespace trainyard::queue
