#include "workers/record_file.h"

#include <algorithm>
#include <utility>

#include "sys/files.h"

namespace trainyard::workers {
namespace {

/// How much longer than a write takes the next one waits.
constexpr int kTimes = 50;

}  // namespace

RecordFile::RecordFile(sys::EventLoop& loop, Options options)
    : loop_(loop), options_(std::move(options)) {
  write();
  write_after(Duration(0));
}

RecordFile::~RecordFile() {
  if (timer_) loop_.cancel(*timer_);
}

void RecordFile::write_after(Duration delay) {
  timer_ = loop_.after(delay, [this] {
    timer_.reset();
    const Duration before = sys::EventLoop::now();
    write();
    write_after(std::max(kEvery, (sys::EventLoop::now() - before) * kTimes));
  });
}

void RecordFile::write() { written_ = sys::replace_file(options_.path, options_.text()); }

Result<void> RecordFile::write_last() {
  const auto timer = std::exchange(timer_, std::nullopt);
  if (timer) loop_.cancel(*timer);
  write();
  return written_;
}

}  // namespace trainyard::workers
