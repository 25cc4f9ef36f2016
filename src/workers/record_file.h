// The record of a parallel run as a file that is always whole: written when it is made, in the next
// turn of the loop and then once a second, or more seldom, so that it takes no more than a fiftieth
// of the time.
//
// Belongs to the thread of its event loop.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "sys/event_loop.h"

namespace trainyard::workers {

class RecordFile {
 public:
  static constexpr Duration kEvery{1'000};

  struct Options {
    std::string path;
    std::function<std::string()> text;
  };
  RecordFile(sys::EventLoop& loop, Options options);
  RecordFile(RecordFile&&) = delete;
  RecordFile& operator=(RecordFile&&) = delete;
  ~RecordFile();

  /// At once, for the last time. An error: why it, or one before it, could not be written.
  Result<void> write_last();

 private:
  void write();
  void write_after(Duration delay);

  sys::EventLoop& loop_;
  Options options_;
  std::optional<sys::EventLoop::TimerId> timer_;
  Result<void> written_;
};

}  // namespace trainyard::workers
