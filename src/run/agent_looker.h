// Has another process look at the machine of an agent, which answers its yard meanwhile: a disk
// that hangs, or a Python that takes long to begin, holds up nothing but the look.
//
// Belongs to the thread of its loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/event_loop.h"
#include "sys/line_stream.h"
#include "sys/stream_program.h"
#include "wire/agent.h"

namespace trainyard::run {

class AgentLooker {
 public:
  /// Called once with what was seen, or why nothing was. May destroy this.
  using Told = std::move_only_function<void(Result<wire::AgentSeen>)>;

  /// `program` is ours: with `agent --look` it answers one question on its standard input.
  AgentLooker(sys::EventLoop& loop, const std::string& program, const wire::AgentLook& look,
              Told told);
  AgentLooker(AgentLooker&&) = delete;
  AgentLooker& operator=(AgentLooker&&) = delete;
  /// Kills the process if it still looks.
  ~AgentLooker();

 private:
  void hear(std::string_view line);
  void tell(Result<wire::AgentSeen> seen);

  sys::EventLoop& loop_;
  Told told_;
  std::optional<sys::StreamProgram> program_;
  std::unique_ptr<sys::LineStream> stream_;
  std::optional<sys::EventLoop::TimerId> timer_;
};

}  // namespace trainyard::run
