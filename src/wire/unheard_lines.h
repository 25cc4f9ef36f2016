// Lines of one side of a conversation that the other has not acknowledged: they are sent
// again when the stream between them has been cut (wire/agent.h). Lines are numbered from 1.
//
// Holds all unacknowledged lines; the sender bounds them by bytes(). One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

namespace trainyard::wire {

class UnheardLines {
 public:
  /// The number of the line that is kept next.
  [[nodiscard]] std::uint64_t next() const { return acknowledged_ + lines_.size() + 1; }
  const std::string& keep(std::string line) {
    bytes_ += line.size();
    return lines_.emplace_back(std::move(line));
  }

  /// Before anything is kept: the next one follows on this.
  void go_on_after(std::uint64_t number) { acknowledged_ = number; }
  /// The number of the last acknowledged line.
  [[nodiscard]] std::uint64_t acknowledged() const { return acknowledged_; }

  /// Removes the lines up to that number, which the other side has acknowledged. Ignores numbers of
  /// lines that were never kept, or were removed before.
  void acknowledge(std::uint64_t up_to) {
    while (acknowledged_ < up_to && !lines_.empty()) {
      bytes_ -= lines_.front().size();
      lines_.pop_front();
      ++acknowledged_;
    }
  }

  /// Those to be said again, in order.
  [[nodiscard]] const std::deque<std::string>& lines() const { return lines_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::uint64_t acknowledged_ = 0;
  std::deque<std::string> lines_;
  std::size_t bytes_ = 0;
};

}  // namespace trainyard::wire
