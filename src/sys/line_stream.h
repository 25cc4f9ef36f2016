// Lines of text over a stream, both ways, without waiting: received lines are passed on one by one,
// sent lines go out as soon as they can.
//
// Does not bound the lines that wait to be sent: the sender checks unsent(). Belongs to the thread
// of its loop.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/outgoing.h"

namespace trainyard::sys {

class LineStream {
 public:
  /// Called with each line without its end, in order. May destroy the stream.
  using OnLine = std::move_only_function<void(std::string_view line)>;
  /// Called once, last of all, with the reason why nothing comes any more. May destroy the stream.
  using OnEnd = std::move_only_function<void(const std::string& why)>;

  struct Options {
    std::size_t line_max = 0;  ///< A longer line ends it.
    OnLine on_line;
    OnEnd on_end;
  };

  /// `socket` is one end of a stream socket. `loop` must outlive this.
  LineStream(EventLoop& loop, Descriptor socket, Options options);
  LineStream(LineStream&&) = delete;
  LineStream& operator=(LineStream&&) = delete;
  /// Closes the socket, whatever waits to be sent.
  ~LineStream();

  void send(std::string_view line);
  [[nodiscard]] std::size_t unsent() const { return outgoing_.size(); }

 private:
  void read();
  void write();
  void end(const std::string& why);

  EventLoop& loop_;
  Descriptor socket_;
  /// Shared, as what is called may destroy this: it is there until it has returned.
  std::shared_ptr<Options> options_;
  std::string incoming_;  ///< A line that has not ended yet.
  Outgoing outgoing_;
  bool waits_for_room_ = false;
  bool ended_ = false;
  /// Shared, so that it is seen that a line has destroyed this.
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace trainyard::sys
