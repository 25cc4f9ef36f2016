// Text for a reader that may not read it: a terminal that was stopped with Ctrl-S, a pipe that
// nobody empties. The messages of a run must not hold it up.
//
// One thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/time.h"
#include "sys/descriptor.h"

namespace trainyard::sys {

class Output {
 public:
  /// The amount that is kept for a slow reader. Text that comes while so much is kept is left out,
  /// and a note in its place says so.
  static constexpr std::size_t kKeptMax = std::size_t{64} << 10;

  /// Borrows `descriptor`. A terminal, a pipe or a FIFO is opened once more, so that only our
  /// descriptor does not block, and not that of all who share it.
  explicit Output(int descriptor);

  /// Writes as much as there is room for now, and keeps the rest. Never waits, but for a disk. A
  /// reader that has gone away is no error of ours: the text is dropped.
  void write(std::string_view text);

  /// Waits until what was kept is written, but no longer than `patience`.
  void finish(Duration patience);

 private:
  void write_kept();
  /// False when there is no room.
  bool write_some(std::string_view& text) const;

  int descriptor_;
  Descriptor own_;
  bool may_wait_ = false;  ///< It could not be opened once more.
  bool left_out_ = false;
  std::string kept_;
};

}  // namespace trainyard::sys
